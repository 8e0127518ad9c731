#include "plugin/dra/driver.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "plugin/kubelet/signals.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin::dra {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = SocketWatch::State;

constexpr milliseconds kRetry{250};
constexpr seconds kLookEvery{2};   // a few calls of stat; inotify tells most of it at once
constexpr seconds kPeersEvery{1};  // one connect each, while there are any
constexpr seconds kSweepEvery{30};
constexpr seconds kOften{1};
constexpr seconds kOftenFor{6};  // the kubelet notices a registration socket that has gone within a second

}  // namespace

Driver::Driver(Parts parts, int signals)
    : parts_(std::move(parts)),
      signals_(signals),
      guard_(parts_.settings.kubelet_dir + "/device-plugins", parts_.clock) {}

Driver::~Driver() = default;

Driver::Outcome Driver::run() {
  auto names = socket_names(parts_.settings.kubelet_dir, parts_.settings.name, parts_.settings.pod_uid);
  if (!names) {
    spdlog::error("driver not started: {}", names.error().message);
    return Outcome::failed;
  }
  names_ = *std::move(names);
  serve_at_ = parts_.clock.now() + parts_.settings.scan_patience;
  for (;;) {
    if (const auto outcome = turn()) return *outcome;
    std::array<pollfd, 4> fds = {{{signals_, POLLIN, 0},
                                  {parts_.events.fd(), POLLIN, 0},
                                  {claims_watch_ ? claims_watch_->fd() : -1, POLLIN, 0},
                                  {registry_watch_ ? registry_watch_->fd() : -1, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), poll_timeout_ms()) < 0 && errno != EINTR) {
      spdlog::error("event loop failed: {}", error_from_errno(errno, "poll").message);
      return Outcome::failed;
    }
    if (fds[0].revents != 0 && asked_to_stop(signals_, parts_.rescan)) return Outcome::stopped;
    if ((fds[2].revents | fds[3].revents) != 0) look_at_ = parts_.clock.now();
    for (const DriverEvent& event : parts_.events.take()) {
      std::visit([this](const auto& news) { hear(news); }, event);
    }
  }
}

std::optional<Driver::Outcome> Driver::turn() {
  if (const auto outcome = guard()) return outcome;
  if (cdi_is_dead_) return Outcome::dead_mount;
  if (const auto outcome = keep_served()) return outcome;
  keep_health_fresh();
  if (parts_.tell) parts_.tell(state_);
  return std::nullopt;
}

std::optional<Driver::Outcome> Driver::guard() {
  const auto error = guard_.look();
  if (!error) return std::nullopt;
  spdlog::error("kubelet directory not locked: {}", error->message);
  return error->code == ErrorCode::failed_precondition ? Outcome::other_agent : Outcome::failed;
}

std::optional<Driver::Outcome> Driver::keep_served() {
  const SteadyTime now = parts_.clock.now();
  if (server_ && now >= look_at_) look_at_sockets();
  if (server_ && now >= sweep_at_) {
    remove_dead_sockets(names_, parts_.settings.name);
    sweep_at_ = now + kSweepEvery;
  }
  if (server_ || now < serve_at_) return std::nullopt;
  const auto served = serve();
  if (served) {
    spdlog::info("driver serving driver={} socket={}", parts_.settings.name, names_.claims_path());
    state_ = {true, false, ""};
    look_at_ = now + kLookEvery;
    sweep_at_ = now;
    peers_ = find_peers();
    return std::nullopt;
  }
  server_.reset();
  serve_at_ = now + kRetry;
  if (served.error().code == ErrorCode::failed_precondition) {
    spdlog::error("driver not started: {}", served.error().message);
    return Outcome::other_agent;
  }
  for (const auto& watch : {std::cref(claims_watch_), std::cref(registry_watch_)}) {
    if (!watch.get() || watch.get()->state() != State::dead) continue;
    spdlog::error("kubelet directory mount is stale, exiting for a restart with a fresh mount: {}",
                  served.error().message);
    return Outcome::dead_mount;
  }
  say_problem(served.error().message);
  return std::nullopt;
}

Result<void> Driver::serve() {
  std::error_code error;
  std::filesystem::create_directories(names_.claims_dir, error);
  if (error) return fail(error_from_errno(error.value(), "making " + names_.claims_dir));
  TRY_ASSIGN(claims_watch_, SocketWatch::open(names_.claims_dir));
  TRY_ASSIGN(registry_watch_, SocketWatch::open(names_.registry_dir));
  if (const std::string& reason = registry_watch_->polling_because(); !reason.empty()) {
    spdlog::warn("kubelet directories not watched, polling interval_ms={}: {}", milliseconds(kLookEvery).count(),
                 reason);
  }
  TRY_ASSIGN(server_,
             DraServer::start(names_, parts_.settings.name,
                              {parts_.claims, parts_.health, parts_.run,
                               [&events = parts_.events](RegistrationNews news) { events.post(std::move(news)); }}));
  return {};
}

void Driver::lose(const std::string& why) {
  spdlog::warn("restarting both sockets: {}", why);
  server_.reset();
  state_ = {false, false, why};
  serve_at_ = parts_.clock.now();
}

void Driver::look_at_sockets() {
  static_cast<void>(claims_watch_->read_events());  // what they say is looked for below
  static_cast<void>(registry_watch_->read_events());
  look_at_ = parts_.clock.now() + (peers_.empty() ? kLookEvery : kPeersEvery);
  if (claims_watch_->state() != State::stands || registry_watch_->state() != State::stands) {
    return lose("a kubelet directory was replaced or removed");
  }
  if (socket_state(names_.claims_path()) == SocketState::missing) {
    return lose(names_.claims_path() + " was removed");
  }
  if (socket_state(names_.registration_path()) == SocketState::missing) {
    spdlog::warn("registration socket removed, restarting it socket={}", names_.registration_path());
    state_.registered = false;
    if (const auto served = server_->serve_registration_again(); !served) return lose(served.error().message);
  }
  std::set<std::string> peers = find_peers();
  if (!std::includes(peers.begin(), peers.end(), peers_.begin(), peers_.end())) {
    health_at_ = parts_.clock.now();
    health_often_until_ = health_at_ + kOftenFor;
  }
  peers_ = std::move(peers);
}

std::set<std::string> Driver::find_peers() const {
  std::set<std::string> peers;
  const auto add = [&peers](const std::string& path) {
    if (socket_state(path) == SocketState::listening) peers.insert(path);
  };
  for (const std::string& name : sockets_in(names_.claims_dir)) {
    if (is_claims_socket(name) && name != names_.claims) add(names_.claims_dir + "/" + name);
  }
  for (const std::string& name : sockets_in(names_.registry_dir)) {
    if (is_registration_socket(name, parts_.settings.name) && name != names_.registration) {
      add(names_.registry_dir + "/" + name);
    }
  }
  return peers;
}

void Driver::hear(const RegistrationNews& news) {
  if (!news.registered) {
    state_.registered = false;
    return say_problem(fmt::format("the kubelet rejected the registration and retries: {}",
                                   news.error.empty() ? "no reason given" : news.error));
  }
  spdlog::info("driver registered driver={}", parts_.settings.name);
  state_.registered = state_.serving;
  state_.problem.clear();
  parts_.registered();
  health_at_ = parts_.clock.now();
}

void Driver::hear(const NodeScanned& /*news*/) {
  if (!server_ && state_.problem.empty()) serve_at_ = parts_.clock.now();
}

void Driver::hear(const CdiMountDead& /*news*/) {
  if (std::exchange(cdi_is_dead_, true)) return;
  spdlog::error("CDI directory mount is stale, exiting for a restart with a fresh mount");
}

void Driver::keep_health_fresh() {
  const SteadyTime now = parts_.clock.now();
  if (now < health_at_) return;
  parts_.health.repeat();
  health_at_ = now + (now < health_often_until_ ? kOften : kHealthEvery);
}

void Driver::say_problem(std::string problem) {
  if (problem != state_.problem) spdlog::warn("driver not registered driver={}: {}", parts_.settings.name, problem);
  state_.problem = std::move(problem);
}

int Driver::poll_timeout_ms() const {
  constexpr seconds kMost{2};  // so that whoever is told each turn knows that the loop turns
  const SteadyTime now = parts_.clock.now();
  SteadyTime next = std::min({now + kMost, guard_.next(), health_at_});
  next = std::min(next, server_ ? std::min(look_at_, sweep_at_) : serve_at_);
  return static_cast<int>(
      std::clamp(std::chrono::ceil<milliseconds>(next - now), milliseconds{0}, milliseconds{kMost}).count());
}

}  // namespace neuron::plugin::dra
