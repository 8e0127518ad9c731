// An agent's /metrics as kubectl-neuron reads it: what is kept of it has the same values, and is kept whole again.

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tools/kubectl-neuron/node_usage.h"

namespace {

using neuron::fleet::NodeUsage;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_sane(const std::optional<double>& value) {
  return !value || (std::isfinite(*value) && *value >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);  // NOLINT
  const NodeUsage usage = neuron::fleet::parse_usage(text);
  for (const auto& [core, use] : usage.cores) require(core >= 0 && is_sane(use.percent));
  for (const auto& [index, use] : usage.devices) require(index >= 0);
  for (const auto& [name, use] : usage.efas) {
    for (const auto& [counter, value] : use.counters) require(is_sane(value));
  }
  const std::string kept = neuron::fleet::kept_metrics(text);
  require(neuron::fleet::kept_metrics(kept) == kept);
  const NodeUsage again = neuron::fleet::parse_usage(kept);
  require(again.cores.size() == usage.cores.size() && again.devices.size() == usage.devices.size() &&
          again.efas.size() == usage.efas.size());
  NodeUsage later = usage;
  neuron::fleet::add_rates(usage, later);
  for (const auto& [name, use] : later.efas) {
    for (const auto& [counter, value] : use.per_second) require(is_sane(value));
  }
  return 0;
}
