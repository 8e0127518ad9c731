#pragma once

#include <string>
#include <string_view>

#include "agent/base/result.h"

namespace neuron::sim {

// RFC 4648 with padding: how Go's JSON writes bytes.
[[nodiscard]] std::string base64_encode(std::string_view bytes);

// Errors: data_corrupt for a length that is no multiple of 4, a foreign character or misplaced padding.
[[nodiscard]] Result<std::string> base64_decode(std::string_view text);

}  // namespace neuron::sim
