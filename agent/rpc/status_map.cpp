#include "agent/rpc/status_map.h"

#include <array>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::rpc {
namespace {

constexpr std::array<std::pair<ErrorCode, grpc::StatusCode>, 8> kTable = {{
    {ErrorCode::not_found, grpc::StatusCode::NOT_FOUND},
    {ErrorCode::permission_denied, grpc::StatusCode::PERMISSION_DENIED},
    {ErrorCode::invalid_argument, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::failed_precondition, grpc::StatusCode::FAILED_PRECONDITION},
    {ErrorCode::unavailable, grpc::StatusCode::UNAVAILABLE},
    {ErrorCode::data_corrupt, grpc::StatusCode::DATA_LOSS},
    {ErrorCode::deadline_exceeded, grpc::StatusCode::DEADLINE_EXCEEDED},
    {ErrorCode::internal, grpc::StatusCode::INTERNAL},
}};

}  // namespace

grpc::Status to_status(const Error& error) {
  for (const auto& [ours, theirs] : kTable) {
    if (ours == error.code) return {theirs, error.message};
  }
  return {grpc::StatusCode::INTERNAL, error.message};
}

Error to_error(const grpc::Status& status, std::string_view what) {
  constexpr std::size_t kMaxForeignText = 400;
  ErrorCode code = ErrorCode::internal;
  for (const auto& [ours, theirs] : kTable) {
    if (theirs == status.error_code()) code = ours;
  }
  return make_error(code, std::string(what) + ": " + printable(status.error_message(), kMaxForeignText) +
                              " (gRPC status " + std::to_string(status.error_code()) + ")");
}

}  // namespace neuron::rpc
