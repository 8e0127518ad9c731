#include "plugin/device/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kOverslept{50};  // a timer so late shows that the process did not run

std::string instance_suffix() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("{:x}-{:x}", ::getpid(), static_cast<std::uint64_t>(now) / 1'000'000U & 0xffffffU);
}

// Logs once when a directory hangs, and once when it answers again.
BoundedCalls::Events logged(const std::string& what) {
  return {[what] { spdlog::warn("{} not answering, lists and grants continue without it", what); },
          [what] { spdlog::info("{} answering again", what); }};
}

}  // namespace

Supervisor::Supervisor(const Parts& parts, int signals)
    : parts_(parts),
      signals_(signals),
      instance_(instance_suffix()),
      directory_calls_(parts.workers, logged("kubelet directory " + parts.settings.device_plugins_dir)),
      pod_resources_calls_(parts.workers, logged("kubelet socket " + parts.settings.pod_resources_socket)),
      directory_(parts.settings.device_plugins_dir, parts.clock, directory_calls_, parts.settings.when_served),
      kubelet_({parts.settings.device_plugins_dir, directory_calls_, parts.settings.pod_resources_socket,
                pod_resources_calls_},
               instance_, parts.service),
      resources_({instance_, parts.settings.pod_resources_interval, parts.settings.offer, parts.settings.own_pod,
                  parts.settings.claims_expected},
                 {parts.clock, parts.service.allocations, parts.service.admissions, parts.checkpoint, kubelet_}) {}

Supervisor::~Supervisor() {
  parts_.service.pre_start.cancel_all();
}

Supervisor::Outcome Supervisor::run() {
  for (;;) {
    if (const auto outcome = step()) return *outcome;
    std::array<pollfd, 3> fds = {
        {{signals_, POLLIN, 0}, {parts_.service.events.fd(), POLLIN, 0}, {directory_.fd(), POLLIN, 0}}};
    const int timeout_ms = poll_timeout_ms();
    const SteadyTime asleep_at = parts_.clock.now();
    if (::poll(fds.data(), fds.size(), timeout_ms) < 0 && errno != EINTR) {
      spdlog::error("event loop failed: {}", error_from_errno(errno, "poll").message);
      return Outcome::failed;
    }
    if (timeout_ms >= 0) check_overslept(asleep_at + milliseconds{timeout_ms});
    if (fds[0].revents != 0 && asked_to_stop(signals_, parts_.rescan)) return Outcome::stopped;
    for (const Event& event : parts_.service.events.take()) {
      if (std::holds_alternative<CdiMountDead>(event)) {
        spdlog::error("CDI directory mount is stale, exiting for a restart with a fresh mount");
        return Outcome::dead_mount;
      }
      std::visit([this](const auto& one) { resources_.handle(one); }, event);
    }
  }
}

std::optional<Supervisor::Outcome> Supervisor::step() {
  const SteadyTime now = parts_.clock.now();
  const Admissions::Progress before = parts_.service.admissions.progress();
  const KubeletDirectory::Changes changes = directory_.read_changes();
  if (changes.end) return changes.end;
  resources_.handle(changes);
  check_overslept(now);  // in the lines above
  resources_.run_due(before);
  kubelet_.close_finished();
  if (parts_.report_serving) parts_.report_serving(serving());
  return std::nullopt;
}

ServingState Supervisor::serving() const {
  ServingState state = resources_.serving();
  state.waited = directory_.waited();
  return state;
}

void Supervisor::check_overslept(SteadyTime due) {
  if (parts_.clock.now() >= due + kOverslept) parts_.service.admissions.woke();
}

int Supervisor::poll_timeout_ms() const {
  constexpr std::chrono::hours kMost{1};
  const SteadyTime now = parts_.clock.now();
  const SteadyTime next = std::min(directory_.next().value_or(now + kMost), resources_.next().value_or(now + kMost));
  return static_cast<int>(
      std::clamp(std::chrono::ceil<milliseconds>(next - now), milliseconds{0}, milliseconds{kMost}).count());
}

}  // namespace neuron::plugin
