#pragma once

#include <string>
#include <string_view>

namespace neuron {

// The bytes of standard base64 with or without padding; stops at the first other letter. Any thread.
[[nodiscard]] std::string decode_base64(std::string_view text);

// Standard base64 with padding. Any thread.
[[nodiscard]] std::string encode_base64(std::string_view bytes);

}  // namespace neuron
