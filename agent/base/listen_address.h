#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron {

// Where a server listens. Passive data.
struct ListenAddress {
  std::string host;        // an IPv4 or IPv6 address without brackets; "": every address, of either kind
  std::uint16_t port = 0;  // 0: any that is free
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// "127.0.0.1:8000", "[::1]:8000"; ":8000" for every address. Names are not resolved: the answer may change and the
// resolver may hang. Errors: invalid_argument, naming the text and the form.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

// The inverse of parse_listen_address.
[[nodiscard]] std::string to_string(const ListenAddress& address);

// A listening TCP socket; closed on exec, non-blocking. Every address means IPv4 and IPv6 through one socket, or IPv4
// alone where the kernel has no IPv6. Errors, naming the address: unavailable (the port is taken), permission_denied,
// not_found (no such address on this node), internal.
[[nodiscard]] Result<Fd> open_listen_socket(const ListenAddress& address);

// The port of `socket`, also where any was asked for; 0 when the kernel does not say.
[[nodiscard]] std::uint16_t port_of(const Fd& socket);

}  // namespace neuron
