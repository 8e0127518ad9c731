#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace neuron {

// Kind of an error, for decisions of callers. rpc/calls.h maps each to one gRPC status.
enum class ErrorCode {
  not_found,            // absent: normal for optional files and hardware
  permission_denied,    // the kernel refused; the message names the path
  invalid_argument,     // the caller's input is wrong
  failed_precondition,  // the input is fine but the state forbids it (a core that is held, an unhealthy device)
  unavailable,          // may work later: busy, peer not up
  data_corrupt,         // foreign text or bytes that do not parse, or exceed their bound
  deadline_exceeded,    // a time budget ran out
  internal,             // an unexpected failure of a system call
};

// Passive data. `message` is one line: the failure, its object, and if possible the remedy. It may contain foreign
// text, so the functions that make an Error escape control characters as \xNN (see printable()).
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  int os_errno = 0;  // 0 when no system call was involved
  // The refusal, where its code is too coarse for an operator or a caller: an entry of the closed list of the subsystem
  // that returns the error (plugin/dra/claim/claim_request.h). "" = none. Static storage: copies, with_context() and
  // TRY keep it.
  std::string_view reason{};

  // The same error, prefixed with the caller's action: "reading neuron3: <message>".
  [[nodiscard]] Error with_context(std::string_view context) &&;
  // The same error with that reason, unless it has one: a caller that receives an error without knows what it was for.
  [[nodiscard]] Error with_reason(std::string_view fallback) &&;
};

[[nodiscard]] Error make_error(ErrorCode code, std::string message);

// Error from an errno value: code by meaning (ENOENT, ENODEV → not_found; EACCES, EPERM → permission_denied; EAGAIN,
// EBUSY → unavailable; ETIMEDOUT → deadline_exceeded; else internal), message "<what>: <text of errno>".
[[nodiscard]] Error error_from_errno(int os_errno, std::string_view what);

// A value or an Error. The type behind the name may change; use only value access, has_value and error(). tl::expected
// has no [[nodiscard]], so every function that returns a Result is marked itself.
template <typename T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return fail(make_error(code, std::move(message)));
}

}  // namespace neuron

#define NEURON_CONCAT_INNER(a, b) a##b
#define NEURON_CONCAT(a, b) NEURON_CONCAT_INNER(a, b)

// TRY(expr): returns the error of a Result<void>-like expression to the caller, else continues.
#define TRY(expr)                                                              \
  do {                                                                         \
    if (auto try_result = (expr); !try_result) {                               \
      return ::tl::unexpected<::neuron::Error>(std::move(try_result).error()); \
    }                                                                          \
  } while (false)

// TRY_ASSIGN(auto x, expr): x becomes the value, or the error returns to the caller.
#define TRY_ASSIGN(lhs, expr) TRY_ASSIGN_INNER(NEURON_CONCAT(try_value_, __LINE__), lhs, expr)
#define TRY_ASSIGN_INNER(tmp, lhs, expr)                                      \
  auto tmp = (expr);                                                          \
  if (!tmp) return ::tl::unexpected<::neuron::Error>(std::move(tmp).error()); \
  lhs = *std::move(tmp)
