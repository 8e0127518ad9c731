// The supervisor's part about the kubelet's directory, the sockets in it, and whether the kubelet still takes what is
// registered from this agent; supervisor.cpp has the loop and the registration.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "plugin/device/supervisor.h"
#include "plugin/kubelet/checkpoint.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDirectoryRetry{250};
constexpr milliseconds kStandsEvery{2000};  // one stat; the loop turns as often at least, Probes::kLoopDue
constexpr milliseconds kAllocatableDeadline{2000};

}  // namespace

std::optional<Supervisor::Outcome> Supervisor::watch_directory() {
  const std::string directory = parts_.settings.device_plugins_dir;
  watch_at_.reset();
  auto watch = SocketWatch::open(directory);
  if (!watch) {
    if (directory_error_ != watch.error().message) {
      spdlog::warn("kubelet directory not usable, waiting for it: {}", watch.error().message);
    }
    directory_error_ = watch.error().message;
    watch_at_ = parts_.clock.now() + kDirectoryRetry;
    return std::nullopt;
  }
  if (watch->state() == SocketWatch::State::dead) return end_on_dead_mount("removed");
  if (const auto outcome = lock_directory()) return outcome;
  if (!lock_) return std::nullopt;
  if (!directory_error_.empty()) spdlog::info("kubelet directory {} is usable again", directory);
  directory_error_.clear();
  watch_ = *std::move(watch);
  stands_at_ = parts_.clock.now() + kStandsEvery;
  for (const std::string& name : sockets_in(directory)) {
    if (socket_state(directory + "/" + name) == SocketState::dead) continue;
    note_other_socket({SocketWatch::Event::Kind::appeared, name});
  }
  if (!holders_known_) {
    ask_holders(parts_.clock.now());
  } else {
    connect_all();
  }
  return std::nullopt;
}

Supervisor::Outcome Supervisor::end_on_dead_mount(std::string_view what) const {
  spdlog::error(
      "{} was {} on the host, and the mount here keeps that directory: no kubelet can be reached through it; ending, "
      "so "
      "that this container is started again with a fresh mount",
      parts_.settings.device_plugins_dir, what);
  return Outcome::dead_mount;
}

// Afterwards the lock is held, or the directory has gone meanwhile and is waited for, or the agent has to end.
std::optional<Supervisor::Outcome> Supervisor::lock_directory() {
  const std::string directory = parts_.settings.device_plugins_dir;
  auto lock = InstanceLock::take(directory);
  if (!lock && lock.error().code == ErrorCode::not_found) {
    watch_at_ = parts_.clock.now() + kDirectoryRetry;
    return std::nullopt;
  }
  if (!lock) {
    spdlog::error("{}", lock.error().message);
    return lock.error().code == ErrorCode::failed_precondition ? Outcome::other_agent : Outcome::failed;
  }
  lock_ = *std::move(lock);
  for (const std::string& name : remove_dead_agent_sockets(directory)) {
    spdlog::info("removed {}, left behind by an agent that was killed", name);
  }
  return std::nullopt;
}

void Supervisor::lose_directory() {
  spdlog::warn("kubelet directory {} was removed or changed too fast; looking again",
               parts_.settings.device_plugins_dir);
  watch_.reset();
  stands_at_.reset();
  lock_.reset();  // it is that directory's
  watch_at_ = parts_.clock.now();
}

void Supervisor::check_directory() {
  if (!stands_at_ || parts_.clock.now() < *stands_at_) return;
  stands_at_ = parts_.clock.now() + kStandsEvery;
  if (watch_->state() != SocketWatch::State::stands) lose_directory();
}

std::optional<Supervisor::Outcome> Supervisor::handle_directory_events() {
  bool kubelet_appeared = false;
  bool own_socket_vanished = false;
  int checkpoints_written = 0;
  for (const auto& event : watch_->read_events()) {
    using Kind = SocketWatch::Event::Kind;
    const bool stands = watch_->state() == SocketWatch::State::stands;
    if (event.kind == Kind::directory_moved && stands) return end_on_dead_mount("renamed");
    if (event.kind == Kind::directory_moved || event.kind == Kind::directory_lost ||
        (event.kind == Kind::vanished && !stands)) {
      lose_directory();
      return std::nullopt;
    }
    if (event.name == kKubeletSocket && event.kind == Kind::appeared) kubelet_appeared = true;
    if (event.name == kCheckpointName && event.kind == Kind::appeared) ++checkpoints_written;
    note_other_socket(event);
    for (const ServedResource& served : served_) {
      if (served.server && event.kind == Kind::vanished && event.name == served.server->endpoint()) {
        own_socket_vanished = true;
      }
    }
  }
  if (checkpoints_written > 0) apply_holders();
  for (; checkpoints_written > 0; --checkpoints_written) parts_.admissions.checkpoint_written();
  if (kubelet_appeared) {
    spdlog::info("kubelet socket appeared, registering");
    parts_.admissions.kubelet_is_new();
  }
  if (kubelet_appeared || own_socket_vanished) connect_all();
  return std::nullopt;
}

void Supervisor::note_other_socket(const SocketWatch::Event& event) {
  if (!is_foreign_socket(event.name, instance_)) return;
  if (event.kind == SocketWatch::Event::Kind::appeared) {
    check_.other_appeared(event.name, parts_.clock.now());
  } else {
    check_.other_vanished(event.name, parts_.clock.now());
  }
}

void Supervisor::ask_allocatable() {
  const SteadyTime asked_at = parts_.clock.now();
  pod_resources_.allocatable(kAllocatableDeadline,
                             [&events = parts_.events, asked_at](Result<rpc::Allocatable> answer) {
                               events.post(AllocatableListed{asked_at, std::move(answer)});
                             });
}

void Supervisor::handle(const AllocatableListed& event) {
  std::vector<RegistrationCheck::Claim> claims;
  for (const ServedResource& served : served_) {
    if (!served.server || served.phase != ServedResource::Phase::registered) continue;
    claims.push_back({served.resource, served.registered_at, served.published_at, served.last_list});
  }
  for (const auto& lost : check_.answered(event.asked_at, event.answer, claims, parts_.clock.now())) {
    register_again(lost);
  }
}

// Our streams end first: an old stream that ends later would take the new registration with it
// (docs/reference/kubelet.md#end-of-a-watch).
void Supervisor::register_again(const RegistrationCheck::Lost& lost) {
  ServedResource* served = find(lost.resource);
  if (served == nullptr || !served->server) return;
  const std::string_view name = model::resource_name(lost.resource);
  if (lost.times == 1) {
    spdlog::warn("resource={} seems to have been taken over: {}; registering again", name, lost.why);
  } else if (lost.times == 2) {
    spdlog::warn(
        "resource={} seems to have been taken over again: {}; two plugins of one resource disturb each other, remove "
        "one. It is "
        "registered again ever more rarely",
        name, lost.why);
  } else {
    spdlog::debug("resource={} was taken over {} times running: {}", name, lost.times, lost.why);
  }
  served->server->end_streams();
  served->schedule_retry(parts_.clock.now());
}

}  // namespace neuron::plugin
