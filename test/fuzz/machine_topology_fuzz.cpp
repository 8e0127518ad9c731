// The answer of the helper program that asks hwloc: refused, or something that can be written and read again. And the
// address that --listen takes.

#include <cstdlib>
#include <string_view>

#include "agent/base/fd.h"
#include "agent/host/machine_topology.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto machine = neuron::host::parse_topology(text)) {
    require(neuron::host::parse_topology(neuron::host::format_topology(*machine)) == *machine);
  }
  if (const auto address = neuron::parse_listen_address(text)) {
    require(neuron::parse_listen_address(neuron::to_string(*address)) == *address);
  }
  return 0;
}
