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

}  // namespace neuron::sim
