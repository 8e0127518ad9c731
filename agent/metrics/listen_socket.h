#pragma once

#include "agent/base/fd.h"
#include "agent/base/listen_address.h"
#include "agent/base/result.h"

namespace neuron::metrics {

// A TCP socket that listens on `address` from now on; closed on exec, never blocking. Every address means IPv4 and IPv6
// through one socket, or IPv4 alone where the kernel has no IPv6. Errors, naming the address: unavailable (the port is
// taken), permission_denied, not_found (no such address on this node), internal.
[[nodiscard]] Result<Fd> open_listen_socket(const ListenAddress& address);

// The port that `socket` has, also where any was asked for; 0 when the kernel does not say.
[[nodiscard]] std::uint16_t port_of(const Fd& socket);

}  // namespace neuron::metrics
