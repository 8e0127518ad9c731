// What the kubelet's directory may hold and what its calls may carry: checkpoint text and device ids.

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "agent/base/parse.h"
#include "agent/model/resource.h"
#include "plugin/kubelet/checkpoint.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto checkpoint = neuron::plugin::parse_checkpoint(text)) {
    for (const auto& one : checkpoint->allocations) {
      require(!one.ids.empty());
      require(neuron::model::parse_resource(one.resource_name).has_value());
    }
    const auto are_numbers = [](const std::vector<int>& numbers) {
      require(std::is_sorted(numbers.begin(), numbers.end()));
      require(numbers.empty() || (numbers.front() >= 0 && numbers.back() <= 65535));
    };
    for (const auto& given : checkpoint->numbering.given) {
      require(!given.cores.empty());
      are_numbers(given.cores);
      are_numbers(given.devices);
    }
    require(checkpoint->verbs_takers.size() <= 8);
    for (const auto& taker : checkpoint->verbs_takers) require(neuron::printable(taker, taker.size() + 1) == taker);
    are_numbers(checkpoint->listed_devices);
    are_numbers(checkpoint->listed_cores);
    require(checkpoint->numbering.highest_listed.has_value() != checkpoint->listed_cores.empty());
  }
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
