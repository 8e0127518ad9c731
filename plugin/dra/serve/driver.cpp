#include "plugin/dra/serve/driver.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin::dra {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = SocketWatch::State;

constexpr milliseconds kRetry{250};
constexpr seconds kCheckEvery{2};  // a few calls of stat; inotify reports most changes at once
constexpr seconds kPeersEvery{1};  // one connect each, while there are any
constexpr seconds kSweepEvery{30};
constexpr seconds kOften{1};
constexpr seconds kOftenFor{6};     // the kubelet notices a removed registration socket within a second
constexpr seconds kEndPatience{4};  // of DraServer

// Logs once when a directory hangs, and once when it answers again.
BoundedCalls::Events logged(const std::string& directory) {
  return {
      [directory] { spdlog::warn("kubelet directory not answering, claims continue without it dir={}", directory); },
      [directory] { spdlog::info("kubelet directory answering again dir={}", directory); }};
}

bool is_missing(const std::string& path) {
  return socket_state(path) == SocketState::missing;
}

using Watches = Driver::Watches;

// The result of serving.
struct Served {
  Result<std::shared_ptr<DraServer>> server;
  std::shared_ptr<Watches> watches{};  // null: a directory cannot be watched
  bool is_dead = false;                // a directory's mount
  std::set<std::string> peers{};
};

// The state of the sockets and their directories.
struct Seen {
  bool directories_stand = false;
  bool claims_missing = false;
  bool registration_missing = false;
  std::set<std::string> peers{};
};

std::set<std::string> find_peers(const SocketNames& names, const std::string& driver) {
  std::set<std::string> peers;
  const auto add = [&peers](const std::string& path) {
    if (socket_state(path) == SocketState::listening) peers.insert(path);
  };
  for (const std::string& name : sockets_in(names.claims_dir)) {
    if (is_claims_socket(name) && name != names.claims) add(names.claims_dir + "/" + name);
  }
  for (const std::string& name : sockets_in(names.registry_dir)) {
    if (is_registration_socket(name, driver) && name != names.registration) add(names.registry_dir + "/" + name);
  }
  return peers;
}

// On a thread that may hang, as see() is.
Served serve(const SocketNames& names, const Driver::Parts& parts, const std::shared_ptr<Watches>& before) {
  const auto is_dead = [](const std::shared_ptr<Watches>& watches) {
    return watches && (watches->claims.state() == State::dead || watches->registry.state() == State::dead);
  };
  std::error_code error;
  std::filesystem::create_directories(names.claims_dir, error);
  if (error) {
    return {fail(error_from_errno(error.value(), "making " + names.claims_dir)), before, is_dead(before)};
  }
  auto claims = SocketWatch::open(names.claims_dir);
  if (!claims) return {fail(std::move(claims).error()), before, is_dead(before)};
  auto registry = SocketWatch::open(names.registry_dir);
  if (!registry) return {fail(std::move(registry).error()), before, is_dead(before)};
  const auto post = [&events = parts.events](RegistrationResult result) { events.post(std::move(result)); };
  Served served{DraServer::start(names, parts.settings.name, {parts.claims, parts.health, parts.workers, post})
                    .map([](std::unique_ptr<DraServer> server) { return std::shared_ptr(std::move(server)); })};
  served.watches = std::make_shared<Watches>(Watches{*std::move(claims), *std::move(registry)});
  if (served.server) {
    served.peers = find_peers(names, parts.settings.name);
  } else {
    served.is_dead = is_dead(served.watches);
  }
  return served;
}

Seen see(const SocketNames& names, const std::string& driver, Watches& watches) {
  static_cast<void>(watches.claims.read_events());  // the state below replaces them
  static_cast<void>(watches.registry.read_events());
  return {watches.claims.may_stand() && watches.registry.may_stand(), is_missing(names.claims_path()),
          is_missing(names.registration_path()), find_peers(names, driver)};
}

}  // namespace

Driver::Driver(Parts parts, int signals)
    : parts_(std::move(parts)),
      signals_(signals),
      calls_(parts_.workers, logged(parts_.settings.kubelet_dir)),
      guard_(parts_.settings.kubelet_dir + "/device-plugins", parts_.clock, calls_) {}

Driver::~Driver() {
  end_server();
}

// On a thread that may hang, since the sockets are unlinked.
void Driver::end_server() {
  if (!server_) return;
  const auto held = std::make_shared<std::shared_ptr<DraServer>>(std::move(server_));
  const auto end = [held] {
    held->reset();
    return true;
  };
  if (calls_.hangs()) return calls_.leave(end);
  static_cast<void>(calls_.run(end, kEndPatience));
}

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
    const bool is_watched = watches_ && !calls_.hangs();
    std::array<pollfd, 4> fds = {{{signals_, POLLIN, 0},
                                  {parts_.events.fd(), POLLIN, 0},
                                  {is_watched ? watches_->claims.fd() : -1, POLLIN, 0},
                                  {is_watched ? watches_->registry.fd() : -1, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), poll_timeout_ms()) < 0 && errno != EINTR) {
      spdlog::error("event loop failed: {}", error_from_errno(errno, "poll").message);
      return Outcome::failed;
    }
    if (fds[0].revents != 0 && asked_to_stop(signals_, parts_.rescan)) return Outcome::stopped;
    if ((fds[2].revents | fds[3].revents) != 0) check_at_ = parts_.clock.now();
    for (const DriverEvent& event : parts_.events.take()) {
      std::visit([this](const auto& one) { handle(one); }, event);
    }
  }
}

std::optional<Driver::Outcome> Driver::turn() {
  if (const auto outcome = guard()) return outcome;
  if (cdi_is_dead_) return Outcome::dead_mount;
  if (const auto outcome = keep_served()) return outcome;
  keep_health_fresh();
  if (parts_.on_turn) parts_.on_turn(state_);
  return std::nullopt;
}

std::optional<Driver::Outcome> Driver::guard() {
  const auto error = guard_.check();
  if (!error) return std::nullopt;
  spdlog::error("kubelet directory not locked: {}", error->message);
  return error->code == ErrorCode::failed_precondition ? Outcome::other_agent : Outcome::failed;
}

std::optional<Driver::Outcome> Driver::keep_served() {
  const SteadyTime now = parts_.clock.now();
  if (server_ && now >= check_at_) check_sockets();
  if (server_ && now >= sweep_at_) {
    static_cast<void>(calls_.run(
        [names = names_, driver = parts_.settings.name] { return remove_dead_sockets(names, driver); }, kBudget));
    sweep_at_ = now + kSweepEvery;
  }
  if (server_ || now < serve_at_) return std::nullopt;
  serve_at_ = now + kRetry;
  auto served =
      calls_.run([names = names_, parts = parts_, before = watches_] { return serve(names, parts, before); }, kBudget);
  if (!served) {
    set_problem("a kubelet directory did not answer: " + parts_.settings.kubelet_dir);
    return std::nullopt;
  }
  watches_ = served->watches;
  if (served->server) {
    server_ = *std::move(served->server);
    spdlog::info("driver serving driver={} socket={}", parts_.settings.name, names_.claims_path());
    if (watches_ && !watches_->registry.polling_because().empty()) {
      spdlog::warn("kubelet directories not watched, polling interval_ms={}: {}", milliseconds(kCheckEvery).count(),
                   watches_->registry.polling_because());
    }
    state_ = {true, false, ""};
    check_at_ = now + kCheckEvery;
    sweep_at_ = now;
    peers_ = std::move(served->peers);
    return std::nullopt;
  }
  const Error& error = served->server.error();
  if (error.code == ErrorCode::failed_precondition) {
    spdlog::error("driver not started: {}", error.message);
    return Outcome::other_agent;
  }
  if (served->is_dead) {
    spdlog::error("kubelet directory mount is stale, exiting for a restart with a fresh mount: {}", error.message);
    return Outcome::dead_mount;
  }
  set_problem(error.message);
  return std::nullopt;
}

void Driver::restart(const std::string& why) {
  spdlog::warn("restarting both sockets: {}", why);
  end_server();
  state_ = {false, false, why};
  serve_at_ = parts_.clock.now();
}

void Driver::check_sockets() {
  check_at_ = parts_.clock.now() + (peers_.empty() ? kCheckEvery : kPeersEvery);
  auto seen = calls_.run(
      [names = names_, driver = parts_.settings.name, watches = watches_] { return see(names, driver, *watches); },
      kBudget);
  if (!seen) return;  // a directory hangs
  if (!seen->directories_stand) return restart("a kubelet directory was replaced or removed");
  if (seen->claims_missing) return restart(names_.claims_path() + " was removed");
  if (seen->registration_missing) {
    spdlog::warn("registration socket removed, restarting it socket={}", names_.registration_path());
    state_.registered = false;
    const auto again = calls_.run([server = server_] { return server->serve_registration_again(); }, kBudget);
    if (again && !*again) return restart(again->error().message);
  }
  if (!std::includes(seen->peers.begin(), seen->peers.end(), peers_.begin(), peers_.end())) {
    health_at_ = parts_.clock.now();
    health_often_until_ = health_at_ + kOftenFor;
  }
  peers_ = std::move(seen->peers);
}

void Driver::handle(const RegistrationResult& result) {
  if (!result.registered) {
    state_.registered = false;
    // As kubelets answer that know no drivers: before 1.34, or with the gate off.
    const bool is_too_old = result.error.find("no handler registered for plugin type") != std::string::npos;
    return set_problem(
        fmt::format("the kubelet rejected the registration and retries: {}{}",
                    result.error.empty() ? "no reason given" : result.error,
                    is_too_old ? "; dynamic resource allocation needs a kubelet of 1.34.2 or newer" : ""));
  }
  spdlog::info("driver registered driver={}", parts_.settings.name);
  state_.registered = state_.serving;
  state_.problem.clear();
  parts_.on_registered();
  health_at_ = parts_.clock.now();
}

void Driver::handle(const NodeScanned& /*event*/) {
  if (!server_ && state_.problem.empty()) serve_at_ = parts_.clock.now();
}

void Driver::handle(const CdiMountDead& /*event*/) {
  if (std::exchange(cdi_is_dead_, true)) return;
  spdlog::error("CDI directory mount is stale, exiting for a restart with a fresh mount");
}

void Driver::keep_health_fresh() {
  const SteadyTime now = parts_.clock.now();
  if (now < health_at_) return;
  parts_.health.repeat();
  health_at_ = now + (now < health_often_until_ ? kOften : kHealthEvery);
}

void Driver::set_problem(std::string problem) {
  if (problem != state_.problem) spdlog::warn("driver not registered driver={}: {}", parts_.settings.name, problem);
  state_.problem = std::move(problem);
}

int Driver::poll_timeout_ms() const {
  constexpr seconds kMost{2};  // a sign of life for Parts::on_turn
  const SteadyTime now = parts_.clock.now();
  SteadyTime next = std::min({now + kMost, guard_.next(), health_at_});
  next = std::min(next, server_ ? std::min(check_at_, sweep_at_) : serve_at_);
  return static_cast<int>(
      std::clamp(std::chrono::ceil<milliseconds>(next - now), milliseconds{0}, milliseconds{kMost}).count());
}

}  // namespace neuron::plugin::dra
