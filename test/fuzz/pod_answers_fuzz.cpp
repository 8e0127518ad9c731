// What the kubelet's PodResources service may answer: any bytes that are a message; names and ids come out bounded.

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "agent/base/parse.h"
#include "agent/rpc/pod_resources.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_name(const std::string& name) {
  require(name.size() <= neuron::rpc::kMaxNameBytes + 8 && neuron::printable(name, name.size()) == name);
}

void check_ids(const std::vector<std::string>& ids) {
  require(std::is_sorted(ids.begin(), ids.end()) && std::adjacent_find(ids.begin(), ids.end()) == ids.end());
  for (const std::string& id : ids) check_name(id);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max())) return 0;
  const int bytes = static_cast<int>(size);
  if (v1::ListPodResourcesResponse list; list.ParseFromArray(data, bytes)) {
    const auto all = neuron::rpc::devices_in(list);
    require(all.size() >= static_cast<std::size_t>(list.pod_resources_size()));
    for (const auto& one : all) {
      for (const std::string* name : {&one.pod_namespace, &one.pod, &one.container, &one.resource_name, &one.claim}) {
        check_name(*name);
      }
      require(one.claim.empty() || !one.ids.empty());
      check_ids(one.ids);
    }
  }
  if (v1::AllocatableResourcesResponse list; list.ParseFromArray(data, bytes)) {
    for (const auto& [resource, ids] : neuron::rpc::allocatable_in(list)) {
      check_name(resource);
      check_ids({ids.begin(), ids.end()});
    }
  }
  return 0;
}
