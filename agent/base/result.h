#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "agent/base/error.h"

namespace neuron {

// A value or the reason why there is none. What is behind the name may change; use only value access, has_value and
// error(). tl::expected carries no [[nodiscard]], so every function that returns a Result is marked itself.
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

// TRY(expr): returns the error of a Result<void>-like expression to the caller, else goes on.
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
