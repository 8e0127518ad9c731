#include "agent/base/error.h"

#include <cerrno>
#include <system_error>

namespace neuron {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::permission_denied:
      return "permission_denied";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::failed_precondition:
      return "failed_precondition";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::data_corrupt:
      return "data_corrupt";
    case ErrorCode::deadline_exceeded:
      return "deadline_exceeded";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

namespace {

ErrorCode code_of(int os_errno) {
  switch (os_errno) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ENOTDIR:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
      return ErrorCode::permission_denied;
    case EAGAIN:
    case EBUSY:
    case EINTR:
      return ErrorCode::unavailable;
    case ETIMEDOUT:
      return ErrorCode::deadline_exceeded;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return ErrorCode::data_corrupt;
    default:
      return ErrorCode::internal;
  }
}

}  // namespace

Error error_from_errno(int os_errno, std::string_view what) {
  return Error{code_of(os_errno), std::string(what) + ": " + std::generic_category().message(os_errno), os_errno};
}

}  // namespace neuron
