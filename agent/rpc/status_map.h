#pragma once

#include <grpcpp/grpcpp.h>

#include "agent/base/error.h"

namespace neuron::rpc {

// The one table between our error codes and gRPC's. The message goes over unchanged.
[[nodiscard]] grpc::Status to_status(const Error& error);

// The inverse, for answers of a peer: `what` says who was asked for what. `status` must not be OK.
[[nodiscard]] Error to_error(const grpc::Status& status, std::string_view what);

}  // namespace neuron::rpc
