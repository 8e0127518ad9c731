#include "plugin/kubelet/watched_checkpoint.h"

#include <condition_variable>
#include <optional>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron::plugin {

struct WatchedCheckpoint::State {
  Mutex mutex;
  std::condition_variable_any ended;
  int hanging GUARDED_BY(mutex) = 0;  // calls that were given up and have not come back
  std::function<void()> came_back GUARDED_BY(mutex);
};

WatchedCheckpoint::WatchedCheckpoint(const std::string& directory, Workers& workers, std::function<void()> came_back)
    : path_(directory + "/" + std::string(kCheckpointName)), workers_(workers), state_(std::make_shared<State>()) {
  const MutexLock lock(state_->mutex);
  state_->came_back = std::move(came_back);
}

WatchedCheckpoint::~WatchedCheckpoint() {
  const MutexLock lock(state_->mutex);
  state_->came_back = nullptr;
}

// What `call` gives on a worker; nullopt: it hangs, or another one does.
template <typename Answer, typename Call>
std::optional<Answer> WatchedCheckpoint::bounded(Call call, std::chrono::milliseconds budget) const {
  struct Question {
    std::optional<Answer> answer;
    bool ended = false;
    bool given_up = false;
  };
  State& state = *state_;
  const auto question = std::make_shared<Question>();  // guarded by the state's mutex
  const SteadyTime until = std::chrono::steady_clock::now() + budget;
  {
    const MutexLock lock(state.mutex);
    if (state.hanging > 0) return std::nullopt;
  }
  workers_.run([shared = state_, question, call = std::move(call)] {
    Answer answer = call();
    const MutexLock lock(shared->mutex);
    question->ended = true;
    if (!question->given_up) {
      question->answer = std::move(answer);
      shared->ended.notify_all();
    } else if (--shared->hanging == 0 && shared->came_back) {
      shared->came_back();
    }
  });
  const MutexLock lock(state.mutex);
  while (!question->ended && state.ended.wait_until(state.mutex, until) == std::cv_status::no_timeout) {
  }
  if (question->ended) return std::move(question->answer);
  question->given_up = true;
  ++state.hanging;
  return std::nullopt;
}

holdings::CheckpointVersion WatchedCheckpoint::version() const {
  if (const auto version = cached_checkpoint_version(path_)) return *version;
  return bounded<holdings::CheckpointVersion>([path = path_] { return checkpoint_version(path); }, kVersionBudget)
      .value_or(0);
}

Result<Checkpoint> WatchedCheckpoint::read() const {
  auto read = bounded<Result<Checkpoint>>([path = path_] { return read_checkpoint(path); }, kReadBudget);
  if (!read) return fail(ErrorCode::deadline_exceeded, "reading " + path_ + " has not returned");
  return *std::move(read);
}

}  // namespace neuron::plugin
