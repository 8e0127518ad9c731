// What a scheduler extender, or whoever may annotate pods, can write on one: as a pod's JSON, and as a list of ids
// alone.

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "agent/base/parse.h"
#include "plugin/placement/placed_pod.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read_pod(neuron::kube::ApiObject object) {
  const auto pod = neuron::plugin::read_placed_pod(object);
  require(pod.problem.empty() || !pod.is_placed());
  require(neuron::printable(pod.problem, pod.problem.size() + 1) == pod.problem);
  const std::string name = pod.full_name();
  require(neuron::printable(name, name.size() + 1) == name);
  for (const auto& container : pod.containers) {
    require(!container.requests.empty());
    if (!container.placed) continue;
    const auto& ids = container.placed->ids;
    require(!ids.empty() && std::is_sorted(ids.begin(), ids.end()));
    require(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
    require(ids.front() >= 0 && ids.back() <= neuron::plugin::kHighestPlacedId);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto ids = neuron::plugin::parse_placed_ids(text)) {
    require(!ids->empty() && ids->size() <= neuron::plugin::kMostPlacedIds);
  }
  const auto line = neuron::kube::parse_watch_line(text);
  if (line && line->kind == neuron::kube::WatchLine::Kind::upsert) read_pod(line->object);
  return 0;
}
