// Expressions of device classes and requests, evaluated for a device. The same expression has one answer, negated the
// other one, where it has any.

#include <cstdlib>
#include <string>

#include "tools/kubectl-neuron/selector.h"

namespace {

using neuron::fleet::Match;
using neuron::fleet::selects;

void require(bool holds) {
  if (!holds) std::abort();
}

neuron::fleet::SliceDevice some_device() {
  neuron::fleet::SliceDevice device;
  device.name = "neuron-device-3";
  device.attributes["resourceType"].text = "neuron_device";
  device.attributes["lnc"].number = 2;
  device.attributes["whole"].flag = true;
  device.attributes["resource.aws.com/devicegroup4_id"].text = "88a3c6ad1661fe1d";
  device.capacity["cores"] = "4";
  device.capacity["memory"] = "96Gi";
  return device;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);  // NOLINT
  static const neuron::fleet::SliceDevice device = some_device();
  const auto answer = selects(text, "neuron.aws.com", device);
  require(answer.match != Match::yes || answer.part.empty());
  if (answer.match == Match::unknown) return 0;
  // An unbalanced bracket would close the one that is put around it.
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0 || c == '\'' || c == '"') return 0;
  }
  const auto negated = selects("!(" + text + ")", "neuron.aws.com", device);
  require(negated.match != answer.match || negated.match == Match::unknown);
  return 0;
}
