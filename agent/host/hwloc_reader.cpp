#include "agent/host/hwloc_reader.h"

#include <hwloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

#include "agent/host/hwloc_copy.h"
#include "agent/host/pci.h"
#include "agent/host/root_source.h"
#include "agent/host/temporary_directory.h"

namespace neuron::host {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

std::vector<int> indices(hwloc_const_bitmap_t set) {
  std::vector<int> values;
  if (set == nullptr || hwloc_bitmap_weight(set) < 0) return values;  // absent or infinite
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) values.push_back(i);
  return values;
}

Error hwloc_error(const FsRoot& root, const char* what) {
  Error error = error_from_errno(errno, std::string(what) + " below " + root.path());
  error.code = ErrorCode::internal;
  return error;
}

// Variables that were set for another program must not change what is read here.
void clear_environment() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with("HWLOC_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

std::vector<model::NumaNode> numa_nodes_of(hwloc_topology_t topology) {
  std::map<int, std::vector<int>> nodes;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    nodes[static_cast<int>(node->os_index)] = indices(node->cpuset);
  }
  std::vector<model::NumaNode> result;
  for (auto& [index, cpus] : nodes) result.push_back({index, std::move(cpus)});
  return result;
}

// hwloc hangs a function without known locality on the whole machine, which says nothing where there are several nodes.
std::map<model::Bdf, std::vector<int>> numa_of_functions(hwloc_topology_t topology, std::size_t node_count) {
  std::map<model::Bdf, std::vector<int>> result;
  hwloc_obj_t function = nullptr;
  while ((function = hwloc_get_next_pcidev(topology, function)) != nullptr) {
    const auto& pci = function->attr->pcidev;
    const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, function);
    if (pci.vendor_id != kAmazonVendor || place == nullptr) continue;
    auto nodes = indices(place->nodeset);
    if (nodes.empty() || (place->type == HWLOC_OBJ_MACHINE && node_count > 1)) continue;
    result[{pci.domain, pci.bus, pci.dev, pci.func}] = std::move(nodes);
  }
  return result;
}

Result<MachineTopology> load(const FsRoot& root) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail(hwloc_error(root, "cannot start"));
  const Topology topology(raw);
  // The usual filter drops class 0880, which is what Neuron devices are.
  if (hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) {
    return fail(hwloc_error(root, "cannot be set up"));
  }
  if (hwloc_topology_load(raw) != 0) return fail(hwloc_error(root, "cannot load the machine"));
  MachineTopology machine;
  machine.numa_nodes = numa_nodes_of(raw);
  machine.numa_of = numa_of_functions(raw, machine.numa_nodes.size());
  return machine;
}

}  // namespace

Result<MachineTopology> read_with_hwloc(const FsRoot& root) {
  constexpr std::uint64_t kUsualFiles = 8192;  // 192 CPUs and 200 functions make 3,000
  std::optional<TemporaryDirectory> copy;
  if (!root.is_live()) {
    TRY_ASSIGN(copy, TemporaryDirectory::make(temporary_place(0, kUsualFiles)));
    TRY(copy_for_hwloc(root, copy->handle()));
  }
  clear_environment();
  ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);  // what the kernel says, and none of the plugins that ask GPUs
  ::setenv("HWLOC_HIDE_ERRORS", "2", 1);          // what goes wrong is an Error here, not text on stderr
  if (copy) {
    ::setenv("HWLOC_FSROOT", copy->path().c_str(), 1);
    ::setenv("HWLOC_DUMPED_HWDATA_DIR", "/none", 1);
  }
  return load(root);
}

}  // namespace neuron::host
