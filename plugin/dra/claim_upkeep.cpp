#include "plugin/dra/claim_upkeep.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/fd.h"

namespace neuron::plugin::dra {

using std::chrono::milliseconds;

ClaimUpkeep::ClaimUpkeep(ClaimStore& store, ClaimSweep& sweep, std::string cdi_directory, Run run,
                         std::function<void()> changed)
    : store_(store),
      sweep_(sweep),
      watch_(std::move(cdi_directory)),
      changes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      run_(std::move(run)),
      changed_(std::move(changed)) {}

void ClaimUpkeep::node_changed() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(changes_.get(), &one, sizeof(one));
}

void ClaimUpkeep::run(const std::stop_token& stop) {
  const Fd stopped(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback wake(stop, [&stopped] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stopped.get(), &one, sizeof(one));
  });
  static_cast<void>(watch_.take());  // whoever runs this has repaired
  SteadyTime sweep_at = std::chrono::steady_clock::now() + kSweepEvery;
  while (!stop.stop_requested()) {
    const auto left = std::chrono::ceil<milliseconds>(sweep_at - std::chrono::steady_clock::now());
    std::array<pollfd, 3> fds = {{{stopped.get(), POLLIN, 0}, {watch_.fd(), POLLIN, 0}, {changes_.get(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max(left, milliseconds{0}).count()));
    if (stop.stop_requested()) return;
    std::uint64_t changes = 0;
    const bool has_changed = ::read(changes_.get(), &changes, sizeof(changes)) > 0;
    if (watch_.take() || has_changed) repair();
    if (std::chrono::steady_clock::now() >= sweep_at) {
      repair();
      sweep();
      sweep_at = std::chrono::steady_clock::now() + kSweepEvery;
    }
    ::poll(fds.data(), 1, static_cast<int>(kPause.count()));
  }
}

void ClaimUpkeep::repair() {
  const auto repaired = store_.repair();
  const std::string error = repaired ? "" : repaired.error().message;
  if (error != last_error_ && !repaired) spdlog::error("claim CDI files not maintained: {}", error);
  last_error_ = error;
  changed_();
}

// One at a time: while one hangs in a broken driver, no other begins.
void ClaimUpkeep::sweep() {
  if (sweeping_->exchange(true)) return;
  run_([&sweep = sweep_, changed = changed_, sweeping = sweeping_] {
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
