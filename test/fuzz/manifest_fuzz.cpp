// Manifests as `kubectl neuron plan` reads them, up to the answer about a node of each mode.

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tools/kubectl-neuron/plan.h"

namespace {

using namespace neuron::fleet;  // NOLINT

void require(bool holds) {
  if (!holds) std::abort();
}

Fleet some_fleet() {
  Fleet fleet;
  fleet.classes = {{"neuron.aws.com", {{"device.driver == 'neuron.aws.com'"}}, "aws.amazon.com/neuron"}};
  for (const Mode mode : {Mode::claims, Mode::device_plugin}) {
    NodeState state = empty_node("inf2.24xlarge", mode);
    fleet.nodes.push_back(state.node);
    for (Pool& pool : state.pools) fleet.pools.push_back(std::move(pool));
  }
  fleet.nodes[0].name = "inf2.24xlarge";
  fleet.nodes[1].name = "plugin";
  return fleet;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);  // NOLINT
  static const Fleet fleet = some_fleet();
  auto manifest = parse_manifest(text, "default", fleet.classes);
  if (!manifest) return 0;
  require(!manifest->groups.empty() && manifest->groups.size() <= 256);
  if (manifest->groups.size() > 4) manifest->groups.resize(4);
  for (PodGroup& group : manifest->groups) {
    require(group.replicas >= 0 && group.replicas <= 100'000);
    group.replicas = std::min(group.replicas, 4);
    const Verdict verdict = fit(fleet, group.pod, node_states(fleet).front());
    require((verdict.answer == Answer::yes) == verdict.obstacles.empty());
    for (const Obstacle& one : verdict.obstacles) require(words_of(one).find('\x1b') == std::string::npos);
  }
  return 0;
}
