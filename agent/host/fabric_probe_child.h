#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace neuron::host {

// How a child process ended, and what it said.
struct ChildOutcome {
  enum class End {
    exited,       // `status` is its exit status
    killed,       // by `signal`, not by us
    out_of_time,  // we killed it when the budget was used up
    not_started,  // `errors` says why
  };
  End end = End::not_started;
  int status = 0;
  int signal = 0;
  std::string output;  // what `body` wrote to its descriptor; at most the bound
  std::string errors;  // what anybody in the child wrote to standard output or error; at most the bound
};

// Runs `body` in a forked child under a time budget, for work that may hang, crash or end the process: foreign
// libraries and broken drivers. `body` is given the descriptor to write its result to; its return value is the child's
// exit status. The child dies with its parent, writes no core file, and what it reads from standard input is empty.
//
// Call it only while this process has one thread: the child goes on with everything but the threads. Returns when the
// child ended or the budget was used up; a child that cannot even be killed, deep in a driver, is left behind.
[[nodiscard]] ChildOutcome run_in_child(const std::function<int(int)>& body, std::chrono::milliseconds budget,
                                        std::size_t max_bytes);

// Writes all of `text`; false when that failed. For bodies.
[[nodiscard]] bool write_all(int fd, const std::string& text);

}  // namespace neuron::host
