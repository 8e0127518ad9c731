// What an API server may answer when asked for a node, and what may be given as names of nodes and labels.

#include <cstdlib>
#include <string_view>

#include "agent/kube/names.h"
#include "agent/kube/node_label.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto label = neuron::kube::label_in(text, "neuron-agent/simulate", "https://[::1]:6443/api/v1/nodes/n1");
  require(label || label.error().code == neuron::ErrorCode::data_corrupt);
  const bool is_path_part = text.find_first_of("/?#%\r\n\t ") == std::string_view::npos && !text.empty();
  if (neuron::kube::check_node_name(text)) require(is_path_part && size <= 253);
  if (neuron::kube::check_label_key(text)) require(size <= 253 + 1 + 63);
  return 0;
}
