#include "tools/neuron-top/sampler.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

namespace neuron::top {

// Lives as long as either thread needs it.
struct Sampler::Shared {
  Collect collect;
  Fd ready;
  mutable Mutex mutex;
  std::condition_variable_any changed;
  std::optional<model::UsageRequest> wanted GUARDED_BY(mutex);
  bool busy GUARDED_BY(mutex) = false;
  bool ending GUARDED_BY(mutex) = false;
  bool ended GUARDED_BY(mutex) = false;
  MomentPtr newest GUARDED_BY(mutex);
};

Result<std::unique_ptr<Sampler>> Sampler::start(Collect collect) {
  Fd ready(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ready.valid()) return fail(error_from_errno(errno, "eventfd"));
  auto shared = std::make_shared<Shared>();
  shared->collect = std::move(collect);
  shared->ready = std::move(ready);
  std::thread([shared] { work(shared); }).detach();
  return std::unique_ptr<Sampler>(new Sampler(std::move(shared)));
}

Sampler::~Sampler() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const MutexLock lock(shared_->mutex);
  shared_->ending = true;
  shared_->changed.notify_all();
  while (!shared_->ended) {
    if (shared_->changed.wait_until(shared_->mutex, until) == std::cv_status::timeout) return;
  }
}

void Sampler::work(const std::shared_ptr<Shared>& shared) {
  for (;;) {
    model::UsageRequest request;
    {
      const MutexLock lock(shared->mutex);
      while (!shared->wanted && !shared->ending) shared->changed.wait(shared->mutex);
      if (shared->ending) break;
      request = *std::exchange(shared->wanted, std::nullopt);
    }
    auto moment = std::make_shared<const Moment>(shared->collect(request));
    {
      const MutexLock lock(shared->mutex);
      shared->newest = std::move(moment);
      shared->busy = false;
    }
    const std::uint64_t one = 1;
    (void)!::write(shared->ready.get(), &one, sizeof one);
  }
  const MutexLock lock(shared->mutex);
  shared->ended = true;
  shared->changed.notify_all();
}

void Sampler::request(const model::UsageRequest& request) {
  const MutexLock lock(shared_->mutex);
  if (shared_->busy) return;
  shared_->busy = true;
  shared_->wanted = request;
  shared_->changed.notify_all();
}

bool Sampler::is_busy() const {
  const MutexLock lock(shared_->mutex);
  return shared_->busy;
}

MomentPtr Sampler::take() {
  std::uint64_t count = 0;
  (void)!::read(shared_->ready.get(), &count, sizeof count);
  const MutexLock lock(shared_->mutex);
  return std::exchange(shared_->newest, nullptr);
}

int Sampler::ready_fd() const {
  return shared_->ready.get();
}

}  // namespace neuron::top
