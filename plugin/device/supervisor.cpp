#include "plugin/device/supervisor.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "plugin/kubelet/checkpoint.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWatchDue{1000};           // the kubelet opens its watch right after Register
constexpr milliseconds kRegisterDeadline{15000};  // the kubelet itself dials back for up to 10 s

bool path_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

// Tells one kubelet's socket from its successor's; 0 when there is none.
std::uint64_t socket_identity(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return 0;
  const auto changed = static_cast<std::uint64_t>(info.st_ctim.tv_sec) * 1'000'000'000U +
                       static_cast<std::uint64_t>(info.st_ctim.tv_nsec);
  return std::max<std::uint64_t>(changed ^ (static_cast<std::uint64_t>(info.st_ino) << 1U), 1);
}

std::string instance_suffix() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("{:x}-{:x}", ::getpid(), static_cast<std::uint64_t>(now) / 1'000'000U & 0xffffffU);
}

}  // namespace

Supervisor::Supervisor(const Parts& parts, int signals)
    : parts_(parts),
      signals_(signals),
      pod_resources_(parts.settings.pod_resources_socket),
      registration_(kubelet_socket()),
      holders_(parts.settings.device_plugins_dir + "/" + std::string(kCheckpointName),
               parts.settings.pod_resources_interval),
      check_(parts.settings.pod_resources_interval,
             [directory = parts.settings.device_plugins_dir](const std::string& name) {
               const SocketState state = socket_state(directory + "/" + name);
               return state != SocketState::dead && state != SocketState::missing;
             }),
      instance_(instance_suffix()) {
  for (const model::Resource resource : model::kAllResources) {
    if (!parts.settings.offer.serves(resource)) continue;
    served_.emplace_back().resource = resource;
  }
}

Supervisor::~Supervisor() {
  parts_.pre_start.cancel_all();
  for (ServedResource& served : served_) {
    if (served.server) served.server->close();  // all streams end together, not one server after another
  }
  served_.clear();
}

Supervisor::Outcome Supervisor::run() {
  watch_at_ = parts_.clock.now();
  for (;;) {
    if (watch_at_ && *watch_at_ <= parts_.clock.now()) {
      if (const auto outcome = watch_directory()) return *outcome;
    }
    check_directory();
    if (const auto outcome = run_timers()) return *outcome;
    tell_serving();
    std::array<pollfd, 3> fds = {{{signals_, POLLIN, 0}, {parts_.events.fd(), POLLIN, 0}, {-1, POLLIN, 0}}};
    if (watch_) fds[2].fd = watch_->fd();
    const int timeout_ms = poll_timeout_ms();
    const SteadyTime asleep_at = parts_.clock.now();
    if (::poll(fds.data(), fds.size(), timeout_ms) < 0 && errno != EINTR) {
      spdlog::error("poll error=\"{}\"", error_from_errno(errno, "poll").message);
      return Outcome::failed;
    }
    if (timeout_ms >= 0) look_whether_overslept(asleep_at + milliseconds{timeout_ms});
    if (fds[0].revents != 0 && handle_signals()) return Outcome::stopped;
    for (const Event& event : parts_.events.take()) {
      std::visit([this](const auto& one) { handle(one); }, event);
    }
  }
}

// Brings every resource to the kubelet that is there now: a server whose socket is gone is replaced, all register.
void Supervisor::connect_all() {
  if (!holders_known_ || !parts_.desk.view()) return;
  drop_dead_servers();
  holders_.kubelet_is_new();
  const std::uint64_t kubelet = socket_identity(kubelet_socket());
  if (kubelet == 0) return;
  for (ServedResource& served : served_) {
    if (served.server && served.kubelet == kubelet && served.phase != ServedResource::Phase::idle) continue;
    served.backoff = milliseconds{0};
    ensure_served(served);
    if (served.server) start_registration(served);
  }
}

void Supervisor::drop_dead_servers() {
  for (ServedResource& served : served_) {
    if (!served.server || path_exists(parts_.settings.device_plugins_dir + "/" + served.server->endpoint())) continue;
    served.server.reset();
    served.phase = ServedResource::Phase::idle;
    served.retry_at.reset();
  }
}

std::string Supervisor::kubelet_socket() const {
  return parts_.settings.device_plugins_dir + "/" + std::string(kKubeletSocket);
}

void Supervisor::ensure_served(ServedResource& served) {
  if (served.server) return;
  auto list = parts_.desk.unit_list(served.resource);
  if (!list || list->empty()) return;  // a node without such hardware does not register it
  auto server = PluginServer::start(served.resource, parts_.settings.device_plugins_dir,
                                    endpoint_name(served.resource, instance_, ++endpoints_made_),
                                    {parts_.desk, parts_.admissions, parts_.pre_start, parts_.events});
  if (!server) {
    if (served.last_error != server.error().message) spdlog::error("{}", server.error().message);
    served.last_error = server.error().message;
    served.schedule_retry(parts_.clock.now());
    return;
  }
  served.server = *std::move(server);
  log_changes(served, *list);
  served.last_list = std::make_shared<const UnitList>(*std::move(list));
  parts_.desk.note_published(served.resource, *served.last_list);
  served.publish(parts_.clock.now());
}

void Supervisor::start_registration(ServedResource& served) {
  served.phase = ServedResource::Phase::registering;
  served.retry_at.reset();
  served.kubelet = socket_identity(kubelet_socket());
  const std::string endpoint = served.server->endpoint();
  registration_.start(served.resource, endpoint, kRegisterDeadline,
                      [&events = parts_.events, resource = served.resource, endpoint](std::optional<Error> error) {
                        events.post(RegisterDone{resource, endpoint, std::move(error)});
                      });
}

void Supervisor::retry_due() {
  const SteadyTime now = parts_.clock.now();
  for (ServedResource& served : served_) {
    if (served.check_at && *served.check_at <= now) {
      served.check_at.reset();
      if (served.phase == ServedResource::Phase::registered && served.server && served.server->watchers() == 0) {
        spdlog::warn("kubelet registered resource={} but does not watch it; registering again",
                     model::resource_name(served.resource));
        served.schedule_retry(now);
      }
    }
    if (!served.retry_at || *served.retry_at > now) continue;
    served.retry_at.reset();
    ensure_served(served);
    if (served.server) start_registration(served);
  }
}

ServedResource* Supervisor::find(model::Resource resource) {
  const auto found = std::find_if(served_.begin(), served_.end(),
                                  [&](const ServedResource& served) { return served.resource == resource; });
  return found == served_.end() ? nullptr : &*found;
}

void Supervisor::handle(const SnapshotChanged& /*event*/) {
  const NodeViewPtr view = parts_.desk.view();
  if (!view || !holders_known_) return;
  apply_holders();  // ids that were unknown until now may be held
  bool appeared = false;
  for (const ServedResource& served : served_) {
    if (served.server) continue;
    const auto list = parts_.desk.unit_list(served.resource);
    appeared = appeared || (list && !list->empty());
  }
  if (appeared) connect_all();
  parts_.admissions.want_lists();
}

void Supervisor::handle(const StreamEnded& event) {
  ServedResource* served = find(event.resource);
  if (served == nullptr || !served->server || served->phase != ServedResource::Phase::registered) return;
  if (served->server->watchers() > 0) return;  // an older stream of the same resource; the newer one lives
  spdlog::warn("kubelet ended the watch of resource={}; registering again", model::resource_name(event.resource));
  served->schedule_retry(parts_.clock.now());
}

void Supervisor::handle(const RegisterDone& event) {
  ServedResource* served = find(event.resource);
  if (served == nullptr || !served->server || served->server->endpoint() != event.endpoint) return;
  if (!event.error) {
    served->phase = ServedResource::Phase::registered;
    served->registered_at = parts_.clock.now();
    served->check_at = served->registered_at + kWatchDue;
    served->last_error.clear();
    spdlog::info("registered resource={} units={} endpoint={}", model::resource_name(event.resource),
                 served->last_list->size(), event.endpoint);
    return;
  }
  const bool first_try = served->backoff.count() == 0;  // a kubelet's socket appears before it listens: say nothing yet
  if (!first_try && served->last_error != event.error->message) {
    spdlog::warn("resource={} not registered, trying again: {}", model::resource_name(event.resource),
                 event.error->message);
  }
  if (!first_try) served->last_error = event.error->message;
  served->schedule_retry(parts_.clock.now());
}

bool Supervisor::handle_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo != SIGHUP) {
      spdlog::info("stopping on signal {}", info.ssi_signo);
      return true;
    }
    spdlog::info("SIGHUP: looking at the machine again");
    parts_.rescan();
  }
  return false;
}

}  // namespace neuron::plugin
