#include "agent/base/result.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "agent/base/parse.h"

namespace neuron {
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

constexpr std::size_t kMaxMessage = 16384;  // two paths of the kernel's maximum length, and the text around them

}  // namespace

Error Error::with_context(std::string_view context) && {
  message = printable_line(std::string(context) + ": " + message, kMaxMessage);
  return std::move(*this);
}

Error Error::with_reason(std::string_view fallback) && {
  if (reason.empty()) reason = fallback;
  return std::move(*this);
}

Error make_error(ErrorCode code, std::string message) {
  return Error{code, printable_line(std::move(message), kMaxMessage), 0};
}

Error error_from_errno(int os_errno, std::string_view what) {
  Error error = make_error(code_of(os_errno), std::string(what) + ": " + std::generic_category().message(os_errno));
  error.os_errno = os_errno;
  return error;
}

}  // namespace neuron
