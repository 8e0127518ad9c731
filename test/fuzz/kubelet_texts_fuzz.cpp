// What the kubelet's directory may hold and what its calls may carry: checkpoint text and device ids.

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "agent/base/parse.h"
#include "plugin/device/listed_units.h"
#include "plugin/kubelet/checkpoint.h"
#include "plugin/kubelet/numbering_evidence.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto holdings = neuron::plugin::parse_checkpoint(text)) {
    for (const auto& holding : *holdings) {
      require(!holding.ids.empty());
      require(neuron::model::parse_resource(holding.resource_name).has_value());
    }
  }
  for (const auto& given : neuron::plugin::parse_numbering_evidence(text).given) require(!given.cores.empty());
  const auto listed = neuron::plugin::parse_listed_units(text);
  require(std::is_sorted(listed.cores.begin(), listed.cores.end()));
  constexpr int kMost = 8191;
  if (const auto list = neuron::parse_int_list(text, kMost)) {
    require(list->size() <= kMost + 1);
    require(neuron::parse_int_list(neuron::format_int_list(*list), kMost) == *list);
  }
  constexpr std::size_t kCut = 64;
  require(neuron::printable(text, kCut).size() <= kCut + 8);
  static_cast<void>(neuron::parse_duration(text).has_value());
  return 0;
}
