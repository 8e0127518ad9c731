#pragma once

#include <string>
#include <string_view>

namespace neuron {

// What went wrong, as far as a caller may have to decide on it. rpc/calls.h maps each to one gRPC status.
enum class ErrorCode {
  not_found,            // the thing is not there: normal for optional files and hardware
  permission_denied,    // the kernel refused; the message names the path
  invalid_argument,     // the caller's input is wrong
  failed_precondition,  // the input is fine but the state forbids it (a core that is held, an unhealthy device)
  unavailable,          // may work later: busy, peer not up
  data_corrupt,         // foreign text or bytes that do not parse, or exceed their bound
  deadline_exceeded,    // a time budget ran out
  internal,             // a system call failed in a way nobody planned for
};

// Passive data. `message` is one line for people: what, where, and if possible what to do. It names files of foreign
// machines, so the functions that make one show whatever a terminal or a log would obey as \xNN (see printable()).
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  int os_errno = 0;  // 0 when no system call was involved

  // The same error, with what the caller was doing put in front: "reading neuron3: <message>".
  [[nodiscard]] Error with_context(std::string_view context) &&;
};

[[nodiscard]] Error make_error(ErrorCode code, std::string message);

// Error from an errno value: code by meaning (ENOENT, ENODEV → not_found; EACCES, EPERM → permission_denied; EAGAIN,
// EBUSY → unavailable; ETIMEDOUT → deadline_exceeded; else internal), message "<what>: <text of errno>".
[[nodiscard]] Error error_from_errno(int os_errno, std::string_view what);

}  // namespace neuron
