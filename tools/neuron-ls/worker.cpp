#include "tools/neuron-ls/worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace neuron::ls {

Result<std::unique_ptr<Worker>> Worker::open(Look look) {
  Fd ready(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ready.valid()) return fail(error_from_errno(errno, "eventfd"));
  return std::unique_ptr<Worker>(new Worker(std::move(look), std::move(ready)));
}

Worker::Worker(Look look, Fd ready) : look_(std::move(look)), ready_(std::move(ready)), thread_([this] { work(); }) {}

Worker::~Worker() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::start() {
  {
    const MutexLock lock(mutex_);
    wanted_ = true;
  }
  changed_.notify_all();
}

bool Worker::is_busy() {
  const MutexLock lock(mutex_);
  return wanted_;
}

std::optional<Shown> Worker::take() {
  std::uint64_t count = 0;
  (void)!::read(ready_.get(), &count, sizeof count);
  const MutexLock lock(mutex_);
  return std::exchange(shown_, std::nullopt);
}

void Worker::work() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      while (!wanted_ && !ending_) changed_.wait(mutex_);
      if (ending_) return;
    }
    Shown shown = look_();
    {
      const MutexLock lock(mutex_);
      shown_ = std::move(shown);
      wanted_ = false;
    }
    const std::uint64_t one = 1;
    (void)!::write(ready_.get(), &one, sizeof one);
  }
}

}  // namespace neuron::ls
