// Any answer of `neuron-agent pods`: refused, or something that can be written and read again; names of
// devices in claims are none, or the one text of what they name.

#include <cstdlib>
#include <string_view>

#include "agent/core/hardware.h"
#include "tools/pods/pods.h"

namespace {

// A node of a device and an interface of unknown core count.
neuron::model::HostScan small_node() {
  neuron::model::HostScan host;
  host.devices.emplace_back();
  host.efas.emplace_back();
  host.efas[0].name = "rdmap16s25";
  return host;
}

void check_device(const std::string& id) {
  static const neuron::model::HostScan kHost = small_node();
  const auto name = neuron::core::parse_pool_name(id);
  if (!name) return;
  if (neuron::core::to_string(*name) != id) std::abort();
  const auto hardware = neuron::core::hardware_of(*name, kHost);
  if (hardware.devices.size() > 1 || hardware.efas.size() > 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = neuron::pods::parse_pod_lines(text);
  if (!parsed) return 0;
  const auto again = neuron::pods::parse_pod_lines(neuron::pods::format_pod_lines(*parsed));
  if (!again || again->size() != parsed->size()) std::abort();
  for (std::size_t i = 0; i < parsed->size(); ++i) {
    if ((*again)[i].claim.empty() != (*parsed)[i].claim.empty()) std::abort();
    for (const std::string& id : (*parsed)[i].ids) check_device(id);
  }
  return 0;
}
