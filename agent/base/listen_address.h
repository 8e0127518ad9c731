#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/base/result.h"

namespace neuron {

// Where a server listens. Passive data.
struct ListenAddress {
  std::string host;        // an IPv4 or IPv6 address without brackets; "": every address, of either kind
  std::uint16_t port = 0;  // 0: any that is free
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// "127.0.0.1:8000", "[::1]:8000"; ":8000" for every address. Names are not resolved: an answer that changes would be
// one more thing to wait for. Errors: invalid_argument, naming the text and the form.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

// The inverse of parse_listen_address.
[[nodiscard]] std::string to_string(const ListenAddress& address);

}  // namespace neuron
