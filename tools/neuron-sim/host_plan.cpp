#include "tools/neuron-sim/host_plan.h"

#include "agent/base/parse.h"

namespace neuron::sim {

Result<Part> parse_part(std::string_view text) {
  if (text == "efa") return Part::efa;
  if (text == "uverbs") return Part::uverbs;
  if (text == "ioctl") return Part::ioctl;
  if (text == "driver") return Part::driver;
  return fail(ErrorCode::invalid_argument,
              "cannot leave out \"" + printable(text) + "\": the parts are efa, uverbs, ioctl, driver");
}

Result<UltraServerPlan> parse_ultraserver(std::string_view text) {
  using State = UltraServerPlan::State;
  if (text == "busy") return UltraServerPlan{State::busy, 0, -1};
  if (text == "alone") return UltraServerPlan{State::alone, 0, -1};
  const auto parts = split(text, ':');
  const auto nodes = parts.empty() ? std::nullopt : parse_int(parts[0], 2, 4);
  const auto node = parts.size() == 2 ? parse_int(parts[1], 0, nodes.value_or(0) - 1) : std::optional(0);
  if (!nodes || *nodes == 3 || !node || parts.size() > 2) {
    return fail(ErrorCode::invalid_argument,
                "UltraServer \"" + printable(text) + "\" is not busy, alone, 2 or 4, or like 4:3 for node 3 of 4");
  }
  return UltraServerPlan{State::linked, *nodes, *node};
}

}  // namespace neuron::sim
