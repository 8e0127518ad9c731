#include "agent/host/machine_topology.h"

#include <hwloc.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "agent/host/pci.h"

namespace neuron::host {
namespace {

constexpr const char* kRootVariable = "HWLOC_FSROOT";

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

Error hwloc_error(const char* what) {
  Error error = error_from_errno(errno, std::string("hwloc: ") + what + " below " + hwloc_root());
  error.code = ErrorCode::internal;
  return error;
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

}  // namespace

void set_hwloc_root(const std::string& root_directory) {
  std::string root = root_directory;
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  if (root == "/") return;
  ::setenv(kRootVariable, root.c_str(), 1);
  ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  ::setenv("HWLOC_DUMPED_HWDATA_DIR", "/none", 1);
  ::setenv("HWLOC_HIDE_ERRORS", "2", 1);  // what goes wrong is an Error here, not text on stderr
}

std::string hwloc_root() {
  const char* root = std::getenv(kRootVariable);
  return root == nullptr || *root == '\0' ? "/" : root;
}

Result<MachineTopology> load_machine_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail(hwloc_error("cannot start"));
  const Topology topology(raw);
  // The usual filter drops class 0880, which is what Neuron devices are.
  if (hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) {
    return fail(hwloc_error("cannot be set up"));
  }
  if (hwloc_topology_load(raw) != 0) return fail(hwloc_error("cannot load the machine"));
  MachineTopology machine;
  machine.numa_nodes = numa_nodes_of(raw);
  machine.numa_of = numa_of_functions(raw, machine.numa_nodes.size());
  return machine;
}

}  // namespace neuron::host
