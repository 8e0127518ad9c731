#include "tools/neuron-sim/kubelet/rpc_error.h"

#include <fmt/format.h>

#include <string_view>

namespace neuron::sim {
namespace {

struct CodeName {
  grpc::StatusCode status;
  std::string_view go_name;
  ErrorCode code;
};

constexpr CodeName kCodes[] = {
    {grpc::CANCELLED, "Canceled", ErrorCode::unavailable},
    {grpc::UNKNOWN, "Unknown", ErrorCode::internal},
    {grpc::INVALID_ARGUMENT, "InvalidArgument", ErrorCode::invalid_argument},
    {grpc::DEADLINE_EXCEEDED, "DeadlineExceeded", ErrorCode::deadline_exceeded},
    {grpc::NOT_FOUND, "NotFound", ErrorCode::not_found},
    {grpc::ALREADY_EXISTS, "AlreadyExists", ErrorCode::failed_precondition},
    {grpc::PERMISSION_DENIED, "PermissionDenied", ErrorCode::permission_denied},
    {grpc::RESOURCE_EXHAUSTED, "ResourceExhausted", ErrorCode::unavailable},
    {grpc::FAILED_PRECONDITION, "FailedPrecondition", ErrorCode::failed_precondition},
    {grpc::ABORTED, "Aborted", ErrorCode::unavailable},
    {grpc::OUT_OF_RANGE, "OutOfRange", ErrorCode::invalid_argument},
    {grpc::UNIMPLEMENTED, "Unimplemented", ErrorCode::internal},
    {grpc::INTERNAL, "Internal", ErrorCode::internal},
    {grpc::UNAVAILABLE, "Unavailable", ErrorCode::unavailable},
    {grpc::DATA_LOSS, "DataLoss", ErrorCode::data_corrupt},
    {grpc::UNAUTHENTICATED, "Unauthenticated", ErrorCode::permission_denied},
};

}  // namespace

Error error_from_status(const grpc::Status& status) {
  for (const CodeName& entry : kCodes) {
    if (entry.status == status.error_code()) {
      return make_error(entry.code,
                        fmt::format("rpc error: code = {} desc = {}", entry.go_name, status.error_message()));
    }
  }
  return make_error(ErrorCode::internal, "rpc error: desc = " + status.error_message());
}

grpc::Status status_from_error(const Error& error) {
  return {grpc::UNKNOWN, error.message};
}

}  // namespace neuron::sim
