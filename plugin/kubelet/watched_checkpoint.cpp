#include "plugin/kubelet/watched_checkpoint.h"

#include <utility>

namespace neuron::plugin {

WatchedCheckpoint::WatchedCheckpoint(const std::string& directory, Workers& workers, std::function<void()> came_back)
    : path_(directory + "/" + std::string(kCheckpointName)), calls_(workers, {{}, std::move(came_back)}) {}

holdings::CheckpointVersion WatchedCheckpoint::version() const {
  if (const auto version = cached_checkpoint_version(path_)) return *version;
  return calls_.run([path = path_] { return checkpoint_version(path); }, kVersionBudget).value_or(0);
}

Result<Checkpoint> WatchedCheckpoint::read() const {
  auto read = calls_.run([path = path_] { return read_checkpoint(path); }, kReadBudget);
  if (!read) return fail(ErrorCode::deadline_exceeded, "reading " + path_ + " has not returned");
  return *std::move(read);
}

}  // namespace neuron::plugin
