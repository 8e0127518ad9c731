#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/error.h"
#include "agent/base/parse.h"

namespace neuron::host {

inline constexpr std::size_t kMaxDeviceProblems = 8;
inline constexpr std::size_t kMaxHostProblems = 32;

// Adds one line to a bounded list; what does not fit is dropped, so that a broken host cannot fill the memory. What
// names of its files would do to a terminal is shown instead (see printable()).
inline void note_problem(std::vector<std::string>& problems, std::size_t limit, std::string line) {
  constexpr std::size_t kMaxLine = 16384;
  if (problems.size() < limit) problems.push_back(printable_line(std::move(line), kMaxLine));
}

// True when the thing is simply not there, which is normal for optional files. A file in the place of a folder, or a
// driver that answers ENODEV, is not that.
[[nodiscard]] inline bool is_absent(const Error& error) {
  return error.code == ErrorCode::not_found && error.os_errno == ENOENT;
}

}  // namespace neuron::host
