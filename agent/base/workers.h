#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace neuron {

// Threads for jobs that read the machine and so may never come back. A job begins at once, on an idle thread or a new
// one, so none waits for another that hangs (unless the system gives no more threads: then for one that ends). There
// are as many threads as jobs run together, as those that have nothing to do for a while end; whoever gives jobs bounds
// how many of them may hang. Thread-safe.
class Workers {
 public:
  // Of the first two that have nothing to do, longer than between two scans as a rule; of more a tenth of it.
  static constexpr std::chrono::milliseconds kIdle{10'000};

  explicit Workers(std::chrono::milliseconds idle = kIdle);
  ~Workers();  // stop(); a thread that hangs keeps what it needs alive
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void run(std::function<void()> job);  // does nothing after stop()

  // Begins no more jobs. False: some did not end by the deadline, and their threads were left behind.
  [[nodiscard]] bool stop(std::chrono::milliseconds deadline);

  [[nodiscard]] std::size_t threads() const;  // that work, hang or wait for jobs

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace neuron
