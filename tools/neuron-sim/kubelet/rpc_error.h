#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "agent/base/result.h"

namespace neuron::sim {

// A failed call as the kubelet's messages show it: "rpc error: code = InvalidArgument desc = <text>". `status` must
// not be OK.
[[nodiscard]] Error error_from_status(const grpc::Status& status);

// The other direction, for the kubelet's own answers: plain Go errors all arrive as UNKNOWN.
[[nodiscard]] grpc::Status status_from_error(const Error& error);

}  // namespace neuron::sim
