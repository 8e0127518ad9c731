#include "agent/metrics/holders.h"

#include <array>
#include <string_view>

#include "agent/base/parse.h"

namespace neuron::metrics {
namespace {

Labels labels_of(std::string_view name_space, std::string_view pod, std::string_view container) {
  return {{"namespace", std::string(name_space)}, {"pod", std::string(pod)}, {"container", std::string(container)}};
}

// Of "namespace/pod/container"; empty ones of any other text.
Labels labels_of(std::string_view shown_as) {
  const auto parts = split(shown_as, '/');
  return parts.size() == 3 ? labels_of(parts[0], parts[1], parts[2]) : labels_of("", "", "");
}

}  // namespace

Holders::Holders(const std::vector<holdings::Holding>& holdings) : nobody_(labels_of("", "", "")) {
  for (const holdings::Holding& holding : holdings) {
    const std::string& by = holding.shown_as.empty() ? holding.holder : holding.shown_as;
    const Held held{by, labels_of(holding.shown_as)};
    if (holding.resource == model::Resource::efa) {
      add(efas_, holding.units, held);
    } else {
      add(cores_, holding.cores, held);
      add(devices_, holding.devices, held);
    }
  }
}

void Holders::add(Map& map, const std::vector<int>& units, const Held& held) {
  for (const int unit : units) {
    const auto [place, is_new] = map.try_emplace(unit, held);
    if (!is_new && place->second.by != held.by) place->second = {"", labels_of("", "", "")};
  }
}

const Labels& Holders::find(const Map& map, int unit) const {
  const auto found = map.find(unit);
  return found == map.end() ? nobody_ : found->second.labels;
}

}  // namespace neuron::metrics
