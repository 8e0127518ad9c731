#include "plugin/dra/serve/blocking_calls.h"

#include <condition_variable>
#include <set>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron::plugin::dra {

struct BlockingCalls::State {
  Mutex mutex;
  std::condition_variable_any none;
  bool closed GUARDED_BY(mutex) = false;
  std::set<std::shared_ptr<Call>> calls GUARDED_BY(mutex);

  [[nodiscard]] grpc::Status enter(const std::shared_ptr<Call>& call) EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (closed) return {grpc::StatusCode::UNAVAILABLE, "the driver is shutting down; try again"};
    if (calls.size() >= kMostCalls) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              "more than " + std::to_string(kMostCalls) + " concurrent calls; try again"};
    }
    calls.insert(call);
    return grpc::Status::OK;
  }
  void leave(const std::shared_ptr<Call>& call) EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    calls.erase(call);
    if (calls.empty()) none.notify_all();
  }
  [[nodiscard]] std::set<std::shared_ptr<Call>> wait_until_none(std::chrono::milliseconds patience) EXCLUDES(mutex) {
    const SteadyTime until = std::chrono::steady_clock::now() + patience;
    const MutexLock lock(mutex);
    closed = true;
    while (!calls.empty() && none.wait_until(mutex, until) == std::cv_status::no_timeout) {
    }
    return calls;
  }
};

// Finished exactly once, by its job or by close(). gRPC's response may be written until then, and no longer.
class BlockingCalls::Call final : public grpc::ServerUnaryReactor {
 public:
  [[nodiscard]] static std::shared_ptr<Call> make() {
    std::shared_ptr<Call> call(new Call);
    call->self_ = call;
    return call;
  }

  void finish(const Commit& commit) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (std::exchange(finished_, true)) return;
    Finish(commit());
  }
  void stop() { stop_.request_stop(); }
  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }

  void OnCancel() override { stop(); }
  void OnDone() override {
    const std::shared_ptr<Call> last = std::move(self_);  // `this` lives until the end of this scope at least
  }

 private:
  Call() = default;
  std::shared_ptr<Call> self_;  // gRPC's share
  std::stop_source stop_;
  Mutex mutex_;
  bool finished_ GUARDED_BY(mutex_) = false;
};

BlockingCalls::BlockingCalls(Run run) : run_(std::move(run)), state_(std::make_shared<State>()) {}

BlockingCalls::~BlockingCalls() {
  close({}, {});
}

grpc::ServerUnaryReactor* BlockingCalls::start(Job job) {
  const auto call = Call::make();
  if (const grpc::Status refused = state_->enter(call); !refused.ok()) {
    call->finish([&refused] { return refused; });
    return call.get();
  }
  run_([state = state_, call, work = std::move(job)] {
    call->finish(work(call->stop_token()));
    state->leave(call);
  });
  return call.get();
}

void BlockingCalls::close(std::chrono::milliseconds patience, std::chrono::milliseconds after_stop) {
  for (const auto& call : state_->wait_until_none(patience)) call->stop();
  for (const auto& call : state_->wait_until_none(after_stop)) {
    call->finish(
        [] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the driver shut down during the call; try again"); });
    state_->leave(call);
  }
}

std::size_t BlockingCalls::running() const {
  const MutexLock lock(state_->mutex);
  return state_->calls.size();
}

}  // namespace neuron::plugin::dra
