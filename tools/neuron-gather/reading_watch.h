#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/neuron-gather/unfinished.h"

namespace neuron::gather {

// A read inside a broken driver may never return, and a process with a thread in such a read cannot even end. So the
// reading is done in a child process, and this is how it says where it is. Parent and child share it.
class ReadingWatch {
 public:
  explicit ReadingWatch(std::vector<std::string> skipped);

  // Says that `path` is about to be read. False when it is one that did not answer before, or lies below one.
  [[nodiscard]] bool permit(const std::string& path);
  // Everything was read: the budget does not apply to what follows.
  void reading_done();

  // What the child is about to write; removed when the child is ended before it is done. False: too long a path.
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

// What is skipped once `path` did not answer: the whole Neuron device or RDMA interface that it is part of, since every
// further read there would cost the budget again; else the path itself.
[[nodiscard]] std::string part_of(const std::string& path);

// Runs `work` in a child process and returns what it returned, 0 to 127. When the child stays at one path for longer
// than `budget` (up to twice as long), it is killed, or left behind if it cannot be, and `work` runs again without that
// part. -1 with a reason on stderr when the child could not be started, died, or hung too often.
//
// SIGINT, SIGTERM or SIGHUP (unless ignored) ends the child and removes what it was writing: 128 plus the signal's
// number. The child also ends when this process is killed. Call from a program with one thread only.
[[nodiscard]] int run_watched(const std::function<int(ReadingWatch&)>& work, std::chrono::milliseconds budget);

}  // namespace neuron::gather
