#include "plugin/device/served_resources.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWatchDue{1000};  // the kubelet opens its watch right after Register

}  // namespace

ServedResources::ServedResources(Settings settings, const Parts& parts)
    : settings_(std::move(settings)),
      parts_(parts),
      holders_(parts, settings_.holders_interval, settings_.own_pod, settings_.claims_expected),
      check_(settings_.holders_interval,
             [&kubelet = parts.kubelet](const std::string& name) { return kubelet.is_listening(name); }) {
  for (const model::Resource resource : model::kAllResources) {
    if (!settings_.offer.serves(resource)) continue;
    served_.emplace_back().resource = resource;
  }
}

ServedResources::~ServedResources() {
  for (ServedResource& served : served_) {
    if (served.server) served.server->close();  // all streams end together, not one server after another
  }
}

void ServedResources::handle(const KubeletDirectory::Changes& changes) {
  using Kind = SocketWatch::Event::Kind;
  bool connect = changes.kubelet_appeared || (changes.usable && holders_.is_known());
  for (const SocketWatch::Event& event : changes.sockets) {
    if (is_foreign_socket(event.name, settings_.instance)) {
      if (event.kind == Kind::appeared) {
        check_.other_appeared(event.name, parts_.clock.now());
      } else {
        check_.other_vanished(event.name, parts_.clock.now());
      }
    }
    if (event.kind != Kind::vanished) continue;
    connect = connect || std::any_of(served_.begin(), served_.end(), [&](const ServedResource& served) {
                return served.server && served.server->endpoint() == event.name;
              });
  }
  if (changes.checkpoints_written > 0) apply_holders();  // before answers that wait for the checkpoint begin
  for (int i = 0; i < changes.checkpoints_written; ++i) parts_.admissions.checkpoint_written();
  if (changes.kubelet_appeared) {
    spdlog::info("kubelet socket appeared, registering");
    follow_kubelet();
  }
  if ((changes.usable || changes.kubelet_appeared) && !holders_.is_known()) {
    holders_.ask(parts_.clock.now());
  }
  if (connect) connect_all();
}

// A retry may have registered with it before inotify reported its socket, and its first pod may be half admitted by
// now: so once per kubelet.
void ServedResources::follow_kubelet() {
  const std::uint64_t kubelet = parts_.kubelet.kubelet();
  if (kubelet == 0 || std::exchange(kubelet_, kubelet) == kubelet) return;
  parts_.admissions.kubelet_is_new();
  holders_.kubelet_is_new();
}

// Brings every resource to the kubelet that is there now: a server whose socket is gone is replaced, all register.
void ServedResources::connect_all() {
  if (!holders_.is_known() || !parts_.allocations.node()) return;
  for (ServedResource& served : served_) drop_if_gone(served);
  const std::uint64_t kubelet = parts_.kubelet.kubelet();
  if (kubelet == 0) return;
  for (ServedResource& served : served_) {
    if (served.server && served.kubelet == kubelet && served.phase != ServedResource::Phase::idle) continue;
    served.backoff = milliseconds{0};
    ensure_served(served);
    if (served.server) start_registration(served);
  }
}

void ServedResources::drop_if_gone(ServedResource& served) {
  if (!served.server || parts_.kubelet.exists(served.server->endpoint())) return;
  served.server.reset();
  served.phase = ServedResource::Phase::idle;
  served.retry_at.reset();
}

void ServedResources::ensure_served(ServedResource& served) {
  if (served.server) return;
  auto list = parts_.allocations.unit_list(served.resource);
  if (!list || list->empty()) return;  // a node without such hardware does not register it
  auto server = parts_.kubelet.serve(served.resource);
  if (!server) {
    if (served.last_error != server.error().message)
      spdlog::error("resource not served resource={}: {}", model::resource_name(served.resource),
                    server.error().message);
    served.last_error = server.error().message;
    served.schedule_retry(parts_.clock.now());
    return;
  }
  served.server = *std::move(server);
  publish(served, *std::move(list));
}

void ServedResources::start_registration(ServedResource& served) {
  served.phase = ServedResource::Phase::registering;
  served.retry_at.reset();
  follow_kubelet();
  served.kubelet = kubelet_;
  parts_.kubelet.start_registration(served.resource, served.server->endpoint());
}

void ServedResources::retry_due() {
  const SteadyTime now = parts_.clock.now();
  for (ServedResource& served : served_) {
    if (served.check_at && *served.check_at <= now) {
      served.check_at.reset();
      if (served.phase == ServedResource::Phase::registered && served.server && served.server->watchers() == 0) {
        spdlog::warn("kubelet opened no watch, registering again resource={}", model::resource_name(served.resource));
        served.schedule_retry(now);
      }
    }
    if (!served.retry_at || *served.retry_at > now) continue;
    // A kubelet wipes the directory before it makes its socket. It accepts the registration of a socket that is gone,
    // gives it up 10 s later, and with it the one that followed.
    if (parts_.kubelet.kubelet() == 0) {
      served.schedule_retry(now);
      continue;
    }
    drop_if_gone(served);
    served.retry_at.reset();
    ensure_served(served);
    if (served.server) start_registration(served);
  }
}

ServedResource* ServedResources::find(model::Resource resource) {
  const auto found = std::find_if(served_.begin(), served_.end(),
                                  [&](const ServedResource& served) { return served.resource == resource; });
  return found == served_.end() ? nullptr : &*found;
}

void ServedResources::handle(const SnapshotChanged& /*event*/) {
  const grant::NodeUnitsPtr node = parts_.allocations.node();
  if (!node || !holders_.is_known()) return;
  apply_holders();  // ids that were unknown until now may be held
  bool appeared = false;
  for (const ServedResource& served : served_) {
    if (served.server) continue;
    const auto list = parts_.allocations.unit_list(served.resource);
    appeared = appeared || (list && !list->empty());
  }
  if (appeared) connect_all();
  parts_.admissions.want_lists();
}

void ServedResources::handle(const StreamEnded& event) {
  ServedResource* served = find(event.resource);
  if (served == nullptr || !served->server || served->phase != ServedResource::Phase::registered) return;
  if (served->server->watchers() > 0) return;  // an older stream of the same resource; the newer one lives
  spdlog::warn("kubelet ended the watch, registering again resource={}", model::resource_name(event.resource));
  served->schedule_retry(parts_.clock.now());
}

void ServedResources::handle(const RegisterDone& event) {
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
    spdlog::warn("registration failed, retrying resource={}: {}", model::resource_name(event.resource),
                 event.error->message);
  }
  if (!first_try) served->last_error = event.error->message;
  served->schedule_retry(parts_.clock.now());
}

void ServedResources::handle(const HoldersListed& event) {
  const bool was_known = holders_.is_known();
  holders_.listed(event);
  check_written();
  if (!was_known && holders_.is_known()) connect_all();
}

void ServedResources::apply_holders() {
  holders_.apply();
  check_written();
}

void ServedResources::check_written() {
  const Checkpoint* written = holders_.is_known() ? holders_.written() : nullptr;
  if (written == nullptr) return;
  const auto given_at = [this](model::Resource resource, const std::string& id) {
    return parts_.allocations.given_at(resource, id);
  };
  for (const auto& lost : check_.written(*written, registered(), given_at, parts_.clock.now())) register_again(lost);
}

std::vector<RegistrationCheck::Registered> ServedResources::registered() const {
  std::vector<RegistrationCheck::Registered> all;
  for (const ServedResource& served : served_) {
    if (!served.server || served.phase != ServedResource::Phase::registered) continue;
    all.push_back({served.resource, served.registered_at, served.published_at, served.last_list});
  }
  return all;
}

void ServedResources::handle(const AllocatableListed& event) {
  for (const auto& lost : check_.answered(event.asked_at, event.answer, registered(), parts_.clock.now())) {
    register_again(lost);
  }
}

// Our streams end first: an old stream that ends later would take the new registration with it
// (docs/reference/kubelet.md#end-of-a-watch).
void ServedResources::register_again(const RegistrationCheck::Lost& lost) {
  ServedResource* served = find(lost.resource);
  if (served == nullptr || !served->server) return;
  const std::string_view name = model::resource_name(lost.resource);
  if (lost.times == 1) {
    spdlog::warn("registration lost to another plugin, registering again resource={}: {}", name, lost.why);
  } else if (lost.times == 2) {
    spdlog::warn(
        "registration lost to another plugin again, backing off resource={}: {}; remove one of the two plugins for "
        "this resource",
        name, lost.why);
  } else {
    spdlog::debug("registration lost to another plugin repeatedly resource={} times={}: {}", name, lost.times,
                  lost.why);
  }
  served->server->end_streams();
  served->schedule_retry(parts_.clock.now());
}

ServingStep ServedResources::serving_step(const ServedResource& served) const {
  if (!served.server) {
    const auto list = parts_.allocations.unit_list(served.resource);
    return !list || list->empty() ? ServingStep::not_offered : ServingStep::waiting;
  }
  switch (served.phase) {
    case ServedResource::Phase::registering:
      return ServingStep::registering;
    case ServedResource::Phase::registered:
      return served.server->watchers() == 0 ? ServingStep::unwatched : ServingStep::registered;
    case ServedResource::Phase::idle:
      break;
  }
  return ServingStep::waiting;
}

ServingState ServedResources::serving() const {
  ServingState state;
  state.scanned = parts_.allocations.node() != nullptr;
  for (const ServedResource& served : served_) state.resources.push_back({served.resource, serving_step(served)});
  return state;
}

bool ServedResources::publish_changed() {
  bool published = false;
  parts_.allocations.adopt_numbering();
  for (ServedResource& served : served_) {
    if (!served.server) continue;
    auto list = parts_.allocations.unit_list(served.resource);
    if (!list || (served.last_list && *served.last_list == *list)) continue;
    publish(served, *std::move(list));
    published = true;
  }
  return published;
}

void ServedResources::publish(ServedResource& served, UnitList list) {
  log_changes(served, list);
  served.last_list = std::make_shared<const UnitList>(std::move(list));
  parts_.allocations.note_published(served.resource, *served.last_list);
  served.publish(parts_.clock.now());
}

// Whichever list it is, the kubelet writes its checkpoint. On a node with EFA alone that is the list of interfaces.
void ServedResources::publish_again() {
  const auto found =
      std::ranges::find_if(served_, [](const ServedResource& served) { return served.server && served.last_list; });
  if (found != served_.end()) found->publish(parts_.clock.now());
}

// Changes of the list. Not by model::diff, which does not cover hardware held through another name.
void ServedResources::log_changes(const ServedResource& served, const UnitList& list) const {
  const grant::NodeUnitsPtr node = parts_.allocations.node();
  const auto is_logged_as_device = [&](int unit) {
    const int device = node->device_of(served.resource, unit);
    return served.resource == model::Resource::neuroncore &&
           (settings_.offer.offers(model::Resource::neuron, device) ||
            settings_.offer.offers(model::Resource::neurondevice, device));
  };
  std::set<std::string_view> unhealthy_before;
  if (served.last_list) {
    for (const UnitState& unit : *served.last_list) {
      if (!unit.healthy) unhealthy_before.insert(unit.id);
    }
  }
  const std::string_view name = model::resource_name(served.resource);
  for (const UnitState& state : list) {
    if (state.healthy != unhealthy_before.contains(state.id)) continue;
    const auto unit = node->unit_of(served.resource, state.id);
    if (!unit || is_logged_as_device(*unit)) continue;
    const model::Health& health = node->health_of(served.resource, *unit);
    if (state.healthy) {
      spdlog::info("unit available again resource={} id={}", name, state.id);
    } else if (health.state == model::HealthState::unhealthy) {
      spdlog::warn("unit unhealthy resource={} id={} reason={}", name, state.id, health.reason);
    } else {
      spdlog::info("unit withheld resource={} id={}: held through another resource or a claim", name, state.id);
    }
  }
}

void ServedResources::run_due(const Admissions::Progress& before) {
  const SteadyTime now = parts_.clock.now();
  retry_due();
  const Admissions::Due due = parts_.admissions.due(before);
  const bool published = due.lists && publish_changed();
  if (!published && due.same_list) publish_again();
  if (due.lists || due.same_list) parts_.admissions.lists_sent();
  // As of `now`: an answer that went out since the newest call was checked is newer than the question.
  if (due.holders) holders_.ask(now);
  if (check_.due(now)) parts_.kubelet.ask_allocatable(now);
}

std::optional<SteadyTime> ServedResources::next() const {
  std::optional<SteadyTime> next;
  const auto consider = [&next](const std::optional<SteadyTime>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(check_.next());
  consider(parts_.admissions.next());
  for (const ServedResource& served : served_) {
    consider(served.retry_at);
    consider(served.check_at);
  }
  return next;
}

}  // namespace neuron::plugin
