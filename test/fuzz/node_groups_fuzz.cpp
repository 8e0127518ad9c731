// The file of --node-groups, and the lists of resources and devices that options take too.

#include <cstdlib>
#include <string_view>

#include "tools/neuron-agent/node_groups.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace neuron;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto groups = agent::parse_node_groups(text)) {
    require(!groups->empty());
    static_cast<void>(agent::find_group(*groups, {"trn1.32xlarge", "ip-10-0-0-1"}).has_value());
  }
  if (const auto resources = core::parse_resource_list(text)) {
    require(core::parse_resource_list(core::format_resource_list(*resources)).value() == *resources);
  }
  if (const auto devices = core::parse_core_devices(text)) {
    require(core::parse_core_devices(core::format_core_devices(*devices)).value() == *devices);
  }
  const auto half = size / 2;
  static_cast<void>(agent::matches_pattern(text.substr(0, half), text.substr(half)));
  return 0;
}
