// A stand-in for libfabric that behaves as FAKE_FABRIC in the environment says: no_data, nics, hang, crash, exit,
// flood. Built as a shared library for fabric_probe_test.

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// One entry with a NIC by name, or by domain only.
fi_info* make_entry(const char* nic, const char* domain, fi_info* next) {
  auto* info = static_cast<fi_info*>(std::calloc(1, sizeof(fi_info)));
  info->fabric_attr = static_cast<fi_fabric_attr*>(std::calloc(1, sizeof(fi_fabric_attr)));
  info->domain_attr = static_cast<fi_domain_attr*>(std::calloc(1, sizeof(fi_domain_attr)));
  if (domain != nullptr) info->domain_attr->name = ::strdup(domain);
  if (nic != nullptr) {
    info->nic = static_cast<fid_nic*>(std::calloc(1, sizeof(fid_nic)));
    info->nic->device_attr = static_cast<fi_device_attr*>(std::calloc(1, sizeof(fi_device_attr)));
    info->nic->device_attr->name = ::strdup(nic);
  }
  info->next = next;
  return info;
}

}  // namespace

extern "C" {

uint32_t fi_version(void) {
  return FI_VERSION(1, 17);
}

const char* fi_strerror(int number) {
  return number == FI_ENODATA ? "No data available" : "another\nerror";
}

fi_info* fi_dupinfo(const fi_info*) {
  return make_entry(nullptr, nullptr, nullptr);
}

void fi_freeinfo(fi_info*) {}

int fi_getinfo(uint32_t, const char*, const char*, uint64_t, const fi_info* hints, fi_info** found) {
  const char* chosen = std::getenv("FAKE_FABRIC");
  const std::string how = chosen != nullptr ? chosen : "";
  if (std::getenv("FI_PROVIDER") != nullptr) return -FI_EINVAL;
  if (how == "hang") {
    for (;;) ::pause();
  }
  if (how == "crash") std::raise(SIGSEGV);
  if (how == "exit") std::_Exit(7);
  if (how == "flood") {
    const std::string line(1000, 'x');
    for (int i = 0; i < 1000; ++i) std::fprintf(stderr, "efa %s\n", line.c_str());
    return -FI_EOTHER;
  }
  if (how == "nics") {
    *found = make_entry("rdmap16s25", "rdmap16s25-rdm", make_entry("rdmap16s25", "rdmap16s25-dgrm", nullptr));
    *found = make_entry(nullptr, "rdmap16s26-dgrm", *found);
    return std::strcmp(hints->fabric_attr->prov_name, "efa") == 0 ? 0 : -FI_EINVAL;
  }
  std::fprintf(stderr, "libfabric:12:34::efa:core:init():7<warn> no device\x1b[31m was found\nanother provider\n");
  return -FI_ENODATA;
}
}
