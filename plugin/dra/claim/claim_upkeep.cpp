#include "plugin/dra/claim/claim_upkeep.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

namespace neuron::plugin::dra {

using std::chrono::milliseconds;

struct ClaimUpkeep::Wakeup {
  const Fd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd.get(), &one, sizeof(one));
  }
  [[nodiscard]] bool take() const {
    std::uint64_t count = 0;
    return ::read(fd.get(), &count, sizeof(count)) > 0;
  }
};

ClaimUpkeep::ClaimUpkeep(ClaimStore& store, ClaimSweep& sweep, Settings settings, Ports ports)
    : store_(store),
      sweep_(sweep),
      settings_(std::move(settings)),
      ports_(std::move(ports)),
      changes_(std::make_shared<Wakeup>()),
      repaired_(std::make_shared<Wakeup>()),
      writer_({"claim files", settings_.cdi_directory + " or " + settings_.claims_directory}, ports_.run_repair,
              ports_.clock) {}

void ClaimUpkeep::node_changed() {
  changes_->wake();
}

void ClaimUpkeep::run(const std::stop_token& stop) {
  const Wakeup stopped;
  const std::stop_callback wake(stop, [&stopped] { stopped.wake(); });
  bool is_wanted = true;
  SteadyTime repair_at = ports_.clock.now();
  SteadyTime sweep_at = repair_at + kSweepEvery;
  while (!stop.stop_requested()) {
    const SteadyTime now = ports_.clock.now();
    if (is_wanted && now >= repair_at && begin_repair()) is_wanted = false;
    SteadyTime next = std::min(sweep_at, writer_.late_at().value_or(sweep_at));
    if (is_wanted && !writer_.is_running()) next = std::min(next, repair_at);
    const auto left = std::chrono::ceil<milliseconds>(next - now);
    std::array<pollfd, 4> fds = {{{stopped.fd.get(), POLLIN, 0},
                                  {watch_ ? watch_->fd() : -1, POLLIN, 0},
                                  {changes_->fd.get(), POLLIN, 0},
                                  {repaired_->fd.get(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max(left, milliseconds{0}).count()));
    if (stop.stop_requested()) return;
    if (end_repair()) repair_at = ports_.clock.now() + kPause;
    if (take_news()) is_wanted = true;
    store_.set_hanging(writer_.is_late());
    if (ports_.clock.now() < sweep_at) continue;
    is_wanted = true;
    sweep();
    sweep_at = ports_.clock.now() + kSweepEvery;
  }
}

bool ClaimUpkeep::await_first() {
  const SteadyTime until = std::chrono::steady_clock::now() + CdiWriter::kPatience;
  const MutexLock lock(mutex_);
  while (!has_repaired_ && first_ended_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
  }
  return has_repaired_;
}

// The watch begins before the repair, so that nothing that goes meanwhile is missed.
bool ClaimUpkeep::begin_repair() {
  if (writer_.is_running()) return false;
  new_watch_ = watch_ ? nullptr : std::make_shared<std::optional<CdiWatch>>();
  return writer_.begin(
      [&store = store_, watch = new_watch_, directory = settings_.cdi_directory] {
        if (watch) *watch = CdiWatch::open(directory);
        const auto repaired = store.repair();
        return CdiWriter::Written{.error = repaired ? "" : repaired.error().message};
      },
      [repaired = repaired_] { repaired->wake(); });
}

bool ClaimUpkeep::end_repair() {
  static_cast<void>(repaired_->take());
  if (!writer_.take()) return false;
  if (const auto opened = std::exchange(new_watch_, nullptr); opened && *opened) watch_ = *std::move(*opened);
  ports_.changed();
  const MutexLock lock(mutex_);
  has_repaired_ = true;
  first_ended_.notify_all();
  return true;
}

// Whether something may have to be repaired.
bool ClaimUpkeep::take_news() {
  const bool has_changed = changes_->take();
  const CdiWatch::News news = watch_ ? watch_->take() : CdiWatch::News::nothing;
  if (news == CdiWatch::News::ended) watch_.reset();
  return has_changed || news != CdiWatch::News::nothing;
}

// One at a time: while one hangs in a broken driver, no other begins.
void ClaimUpkeep::sweep() {
  if (sweeping_->exchange(true)) return;
  ports_.run_sweep([&sweep = sweep_, changed = ports_.changed, sweeping = sweeping_] {
    const auto released = sweep.sweep();
    if (!released) spdlog::debug("orphaned claims not checked: {}", released.error().message);
    for (const std::string& claim : released.value_or(std::vector<std::string>{})) {
      spdlog::warn("released orphaned claim claim={}", claim);
    }
    if (released && !released->empty()) changed();
    sweeping->store(false);
  });
}

}  // namespace neuron::plugin::dra
