#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "agent/base/workers.h"
#include "plugin/kubelet/checkpoint_source.h"

namespace neuron::plugin {

// The checkpoint file on a disk that may hang: it is read on `workers`, for so long, and given up then. While a call
// hangs no other is begun, and every answer comes at once: that it cannot be read, and a version of 0. Any thread.
class WatchedCheckpoint final : public CheckpointSource {
 public:
  static constexpr std::chrono::milliseconds kReadBudget{1000};
  static constexpr std::chrono::milliseconds kVersionBudget{500};

  // `came_back`: every call that was given up has ended, so that it is worth reading again; on one of the workers, must
  // not block, never after the destructor. Empty: nothing is called. `workers` must outlive this object.
  WatchedCheckpoint(const std::string& directory, Workers& workers, std::function<void()> came_back = {});

  // Reads from the page cache, where a file is that the kubelet has just written; on a worker only when it is not
  // there.
  [[nodiscard]] holdings::CheckpointVersion version() const override;
  [[nodiscard]] Result<Checkpoint> read() const override;  // deadline_exceeded, too: it hangs

 private:
  const std::string path_;
  const BoundedCalls calls_;
};

}  // namespace neuron::plugin
