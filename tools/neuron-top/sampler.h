#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>

#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "tools/neuron-top/moment.h"

namespace neuron::top {

// Reads the machine in a thread of its own, so that a hung driver never blocks keys or the end of the program. All
// methods may be called from one thread, none of them blocks except the destructor.
class Sampler {
 public:
  using Collect = std::function<Moment(const model::UsageRequest&)>;

  // `collect` runs in the other thread only, one call at a time. What it refers to has to be owned by it: when it hangs
  // for ever the thread is left behind. Errors: internal (no eventfd).
  [[nodiscard]] static Result<std::unique_ptr<Sampler>> start(Collect collect);

  // Waits up to kPatience for a collect under way, then leaves the thread to itself; it ends with the process.
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void request(const model::UsageRequest& request);  // does nothing while busy
  [[nodiscard]] bool is_busy() const;
  [[nodiscard]] MomentPtr take();      // the newest that was not taken yet, or null
  [[nodiscard]] int ready_fd() const;  // readable when take() has something

  static constexpr std::chrono::milliseconds kPatience{300};

 private:
  struct Shared;
  explicit Sampler(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace neuron::top
