#include "agent/host/fabric_probe_library.h"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include <cstring>

#include "agent/base/fd.h"
#include "agent/host/fabric_probe.h"

// The only door to libfabric. Its headers give the types; every function is looked up in the loaded library, at the
// symbol versions of those headers, which later libraries keep.
namespace neuron::host {
namespace {

struct FabricLibrary {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  decltype(&::fi_version) version = nullptr;
  [[nodiscard]] bool complete() const {
    return getinfo != nullptr && freeinfo != nullptr && dupinfo != nullptr && strerror != nullptr && version != nullptr;
  }
};

template <typename Function>
void look_up(void* library, const char* name, const char* symbol_version, Function& function) {
  void* symbol = ::dlvsym(library, name, symbol_version);
  if (symbol == nullptr) symbol = ::dlsym(library, name);
  std::memcpy(&function, &symbol, sizeof function);  // POSIX: a symbol's address is a function's
}

FabricLibrary functions_of(void* library) {
  FabricLibrary fabric;
  look_up(library, "fi_getinfo", "FABRIC_1.3", fabric.getinfo);
  look_up(library, "fi_freeinfo", "FABRIC_1.3", fabric.freeinfo);
  look_up(library, "fi_dupinfo", "FABRIC_1.3", fabric.dupinfo);
  look_up(library, "fi_strerror", "FABRIC_1.0", fabric.strerror);
  look_up(library, "fi_version", "FABRIC_1.0", fabric.version);
  return fabric;
}

// Lines are the form of the answer, so a text must not bring its own.
std::string one_line(const char* text) {
  std::string line = text != nullptr ? text : "";
  for (char& letter : line) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  return line;
}

std::string name_of(const fi_info& info) {
  if (info.nic != nullptr && info.nic->device_attr != nullptr && info.nic->device_attr->name != nullptr) {
    return one_line(info.nic->device_attr->name);
  }
  if (info.domain_attr != nullptr && info.domain_attr->name != nullptr) {
    return nic_of_domain(one_line(info.domain_attr->name));
  }
  return "";
}

std::string ask(const FabricLibrary& fabric, const std::string& provider) {
  const std::uint32_t version = fabric.version();
  std::string answer = "version " + std::to_string(FI_MAJOR(version)) + '.' + std::to_string(FI_MINOR(version)) + '\n';
  fi_info* hints = fabric.dupinfo(nullptr);  // what the header's fi_allocinfo does
  if (hints == nullptr || hints->fabric_attr == nullptr || hints->domain_attr == nullptr) {
    return answer + "error " + std::to_string(FI_ENOMEM) + " no memory for hints\ndone\n";
  }
  hints->mode = ~std::uint64_t{0};
  hints->domain_attr->mode = ~std::uint64_t{0};
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());  // freed by fi_freeinfo
  fi_info* found = nullptr;
  const int result = fabric.getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, hints, &found);
  if (result != 0) {
    answer += "error " + std::to_string(-result) + ' ' + one_line(fabric.strerror(-result)) + '\n';
  }
  for (const fi_info* info = found; info != nullptr; info = info->next) answer += "interface " + name_of(*info) + '\n';
  if (found != nullptr) fabric.freeinfo(found);
  fabric.freeinfo(hints);
  return answer + "done\n";
}

}  // namespace

int ask_fabric_library(const std::vector<std::string>& libraries, const std::string& provider, int output) {
  ::setenv("FI_LOG_LEVEL", "warn", 1);
  ::unsetenv("FI_PROVIDER");  // the provider is asked for by name
  std::string refusal = "no library named";
  for (const std::string& name : libraries) {
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (&name == &libraries.front()) refusal = one_line(::dlerror());
      continue;
    }
    const FabricLibrary fabric = functions_of(library);
    const std::string answer =
        fabric.complete() ? ask(fabric, provider) : "missing " + name + " lacks the functions of libfabric\ndone\n";
    return write_all(output, answer, "the answer") ? 0 : 1;  // never unloaded: some providers leave threads behind
  }
  return write_all(output, "missing " + refusal + "\ndone\n", "the answer") ? 0 : 1;
}

}  // namespace neuron::host
