#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/result.h"

// Short-lived child processes, for work that this process should not do: link a large library, or read what may hang or
// crash. Each has a time budget and a bound on its output.
namespace neuron {

// A child of this process; no other code waits for it. Killed when it goes out of scope before wait() saw its end; one
// that cannot be killed, as it hangs in a driver, is abandoned after a second. One thread at a time.
class Child {
 public:
  explicit Child(pid_t pid);
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Readable once it has ended; -1 where the kernel has no pidfd (before 5.3): then wait() is not bounded.
  [[nodiscard]] int handle() const { return handle_.get(); }
  // The exit status, or minus the signal that ended it; nullopt when it still runs at that time, or when the status is
  // unknown (SIGCHLD is ignored). Once.
  [[nodiscard]] std::optional<int> wait(SteadyTime until);
  void kill();

 private:
  pid_t pid_;
  Fd handle_;
  bool reaped_ = false;
};

// Forks: the child runs `body` and exits with what it returns. It dies with its parent. Call it only while this process
// has one thread, since the child has everything but the threads.
[[nodiscard]] Result<pid_t> fork_child(const std::function<int()>& body);

// A child's end and output. Passive data.
struct ChildOutcome {
  enum class End {
    exited,       // `status` is its exit status
    killed,       // by the signal `status`, from elsewhere
    out_of_time,  // killed at the end of the budget
    cut,          // killed when its output passed the bound
  };
  End end = End::out_of_time;
  int status = 0;
  std::string output;  // at most the bound
  std::string errors;  // its first bytes, up to the bound
};

// Runs words[0], a path, with the others as arguments, with empty standard input and the signals as they are by
// default; output and errors are its standard ones. Safe with other threads. Both return at the child's end, at
// the end of the budget or at the bound, and a second later when it does not die. Errors: from errno when
// it could not be started; internal (exit status unknown).
[[nodiscard]] Result<ChildOutcome> run_program(const std::vector<std::string>& words, std::chrono::milliseconds budget,
                                               std::size_t max_bytes);

// Runs `body` in a forked child, for work on this process's data (an unpacked root, a captured request) or without a
// program to start, with the ends and errors of run_program(). `body` receives the descriptor for its output; standard
// output and error are the errors. It writes no core file. As fork_child(): one thread only.
[[nodiscard]] Result<ChildOutcome> run_in_child(const std::function<int(int)>& body, std::chrono::milliseconds budget,
                                                std::size_t max_bytes);

// A program that runs beside this process; it dies with this object and with this process. Passive data.
struct BackgroundProgram {
  std::unique_ptr<Child> child;
  Fd output;  // its standard output and errors together; does not block
};

// Starts words[0], a path, with the others as arguments and empty standard input. One thread only, as fork_child(); the
// program ends when that thread does. Errors: from errno. A path that cannot be run shows as exit status 127.
[[nodiscard]] Result<BackgroundProgram> start_program(const std::vector<std::string>& words);

// Path of a program that is installed with the running one: "bin/NAME" or "libexec/neuron-node-agent/NAME". Errors:
// not_found.
[[nodiscard]] Result<std::string> find_helper(const std::string& name);

// The last line of the errors, made printable; earlier lines may be a library's log.
[[nodiscard]] std::string complaint_of(const ChildOutcome& outcome);

}  // namespace neuron
