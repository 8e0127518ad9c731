#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/result.h"

// Child processes that do for a moment what the calling one should not: link a large library, or read what may hang or
// crash. Each has a time budget and a bound on what it says.
namespace neuron {

// A child of this process that nobody else waits for. Killed when it goes out of scope before wait() saw its end; one
// that cannot even be killed, deep in a driver, is left behind after a second. One thread at a time.
class Child {
 public:
  explicit Child(pid_t pid);
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Readable once it has ended; -1 where the kernel has no such thing (before 5.3): then wait() knows no bound.
  [[nodiscard]] int handle() const { return handle_.get(); }
  // The exit status, or minus the signal that ended it; nullopt when it still runs at that time, or when the system
  // does not say (SIGCHLD is ignored). Once.
  [[nodiscard]] std::optional<int> wait(SteadyTime until);
  void kill();

 private:
  pid_t pid_;
  Fd handle_;
  bool reaped_ = false;
};

// Forks: the child runs `body` and exits with what it returns. It dies with its parent. Call it only while this process
// has one thread, since the child goes on with everything but the threads.
[[nodiscard]] Result<pid_t> fork_child(const std::function<int()>& body);

// How a child ended, and what it said. Passive data.
struct ChildOutcome {
  enum class End {
    exited,       // `status` is its exit status
    killed,       // by the signal `status`, not by us
    out_of_time,  // we killed it when the budget was used up
    cut,          // we killed it when its output passed the bound
  };
  End end = End::out_of_time;
  int status = 0;
  std::string output;  // at most the bound
  std::string errors;  // its first bytes, up to the bound
};

// Runs words[0], a path, with the others as arguments, with empty standard input and the signals as they are by
// default; output and errors are its standard ones. Safe where other threads run. Both return at the child's end, at
// the end of the budget or at the bound, and a second later when it does not die. Errors: what the kernel says when it
// could not be started; internal (nobody says how it ended).
[[nodiscard]] Result<ChildOutcome> run_program(const std::vector<std::string>& words, std::chrono::milliseconds budget,
                                               std::size_t max_bytes);

// The same with `body` in a forked child, where the work needs what this process holds (an unpacked root, a captured
// request) or there is no program to start. `body` is given the descriptor to write its output to; standard output and
// error are the errors. It writes no core file. As fork_child(): one thread only.
[[nodiscard]] Result<ChildOutcome> run_in_child(const std::function<int(int)>& body, std::chrono::milliseconds budget,
                                                std::size_t max_bytes);

// Where a helper program of ours is: ../libexec/neuron-node-agent/NAME seen from the running program. Errors:
// not_found.
[[nodiscard]] Result<std::string> find_helper(const std::string& name);

// The last line of the errors, made printable; before it a library may have logged something.
[[nodiscard]] std::string complaint_of(const ChildOutcome& outcome);

}  // namespace neuron
