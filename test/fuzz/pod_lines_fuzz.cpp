// Any answer of the helper program neuron-pods: refused, or something that can be written and read again.

#include <cstdlib>
#include <string_view>

#include "tools/pods/pod_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = neuron::pods::parse_pod_lines(text);
  if (!parsed) return 0;
  const auto again = neuron::pods::parse_pod_lines(neuron::pods::format_pod_lines(*parsed));
  if (!again || again->size() != parsed->size()) std::abort();
  for (std::size_t i = 0; i < parsed->size(); ++i) {
    if ((*again)[i].claim.empty() != (*parsed)[i].claim.empty()) std::abort();
  }
  return 0;
}
