#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/neuron-gather/output.h"

namespace neuron::gather {

// The progress of a reading child process, in memory shared with its parent. A read inside a broken driver may never
// return, and a process with a thread in such a read cannot even exit: hence the child.
class ReadingWatch {
 public:
  explicit ReadingWatch(std::vector<std::string> skipped);

  // Records that `path` is about to be read. False when it, or a folder above it, did not answer before.
  [[nodiscard]] bool permit(const std::string& path);
  // Everything was read: the budget no longer applies.
  void reading_done();

  // Records the output that the child begins; it is removed when the child dies before it finishes. False: too long a
  // path.
  [[nodiscard]] bool begin_output(const Unfinished& unfinished);

  [[nodiscard]] unsigned long steps() const;  // permits so far
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] std::string last_path() const;  // the newest permit's
  [[nodiscard]] Unfinished output() const;      // of begin_output()

 private:
  struct Shared;
  struct Unmap {
    void operator()(Shared* shared) const;
  };
  std::unique_ptr<Shared, Unmap> shared_;  // empty when there was no memory to share: then the child is not watched
  std::vector<std::string> skipped_;
};

// The part to skip once `path` did not answer: its whole Neuron device or RDMA interface, since every further read
// there would cost the budget again; else the path itself.
[[nodiscard]] std::string part_of(const std::string& path);

// Runs `work` in a child process and returns its result, 0 to 127. A child that stays at one path for longer than
// `budget` (up to twice as long) is killed, or left behind if it cannot be, and `work` runs again without that part. -1
// with a reason on stderr when the child could not be started, died, or hung too often.
//
// SIGINT, SIGTERM or SIGHUP (unless ignored) ends the child and removes its output: 128 plus the signal's number. The
// child also ends when this process is killed. Call from a program with one thread only.
[[nodiscard]] int run_watched(const std::function<int(ReadingWatch&)>& work, std::chrono::milliseconds budget);

}  // namespace neuron::gather
