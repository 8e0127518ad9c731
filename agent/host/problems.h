#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/base/result.h"
#include "agent/model/read_problem.h"

namespace neuron::host {

inline constexpr std::size_t kMaxDeviceProblems = 8;
inline constexpr std::size_t kMaxHostProblems = 32;

// Adds to a list of at most `limit`; what does not fit is dropped, so that a broken host cannot fill the memory. Bytes
// that a terminal would obey, as in file names, are shown as \xNN (see printable()).
inline void note_problem(std::vector<model::ReadProblem>& problems, std::size_t limit, model::ReadProblem problem) {
  constexpr std::size_t kMaxLine = 16384;
  if (problems.size() >= limit) return;
  problem.path = printable_line(std::move(problem.path), kMaxLine);
  problem.detail = printable_line(std::move(problem.detail), kMaxLine);
  problems.push_back(std::move(problem));
}

// The problem with `path`. FsRoot's messages begin with the path, those of parsers do not.
[[nodiscard]] inline model::ReadProblem problem_with(std::string path, const Error& error,
                                                     model::ProblemKind kind = model::ProblemKind::file) {
  const bool names_path = error.message.starts_with(path + ": ");
  std::string detail = names_path ? error.message.substr(path.size() + 2) : error.message;
  return {kind, std::move(path), std::move(detail)};
}

// True when the thing is simply not there, which is normal for optional files. A file in the place of a folder, or a
// driver that answers ENODEV, is not that. Any other error is no evidence of absence.
[[nodiscard]] inline bool is_absent(const Error& error) {
  return error.code == ErrorCode::not_found && error.os_errno == ENOENT;
}

// True when this process or the machine lacks descriptors or memory: the error says nothing about the file, not even
// that there is one.
[[nodiscard]] inline bool is_shortage(const Error& error) {
  return error.os_errno == EMFILE || error.os_errno == ENFILE || error.os_errno == ENOMEM;
}

}  // namespace neuron::host
