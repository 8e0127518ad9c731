#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"

namespace neuron::ls {

// What one look at the node gave to show. Passive data.
struct Shown {
  std::string text;       // "" when there is nothing to list
  std::string complaint;  // for stderr, with line ends: why there is nothing, or what is unknown
};

// Looks at the node in a thread of its own, since a hung driver may block for ever and the terminal must not. All
// methods from one thread; `look` is only ever called from the worker's.
class Worker {
 public:
  using Look = std::function<Shown()>;

  // Errors: internal, when the kernel gives no eventfd.
  [[nodiscard]] static Result<std::unique_ptr<Worker>> open(Look look);
  ~Worker();  // waits for the look that is under way
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start() EXCLUDES(mutex_);                               // begins a look; nothing while one is under way
  [[nodiscard]] bool is_busy() EXCLUDES(mutex_);               // one is under way
  [[nodiscard]] int ready_fd() const { return ready_.get(); }  // readable once a look has ended
  [[nodiscard]] std::optional<Shown> take() EXCLUDES(mutex_);  // what it gave, once

 private:
  Worker(Look look, Fd ready);
  void work() EXCLUDES(mutex_);

  const Look look_;
  const Fd ready_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool wanted_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::optional<Shown> shown_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace neuron::ls
