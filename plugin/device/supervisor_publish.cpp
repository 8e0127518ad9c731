// The supervisor's publishing, holders and timers; supervisor.cpp has the loop and the registration.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "plugin/device/supervisor.h"
#include "plugin/kubelet/checkpoint.h"
#include "plugin/kubelet/numbering_evidence.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kListDeadline{2000};
constexpr milliseconds kAskAfterFailure{1000};
constexpr milliseconds kAskWhileWithheld{500};  // the kubelet tells nobody that a container has ended
constexpr milliseconds kOverslept{50};          // so late a timer tells that the process did not run

}  // namespace

bool Supervisor::publish_changed() {
  bool published = false;
  parts_.desk.adopt_numbering();
  for (ServedResource& served : served_) {
    if (!served.server) continue;
    auto list = parts_.desk.unit_list(served.resource);
    if (!list || (served.last_list && *served.last_list == *list)) continue;
    log_changes(served, *list);
    served.last_list = std::make_shared<const UnitList>(*std::move(list));
    parts_.desk.note_published(served.resource, *served.last_list);
    served.publish(parts_.clock.now());
    published = true;
  }
  return published;
}

void Supervisor::publish_again() {
  for (ServedResource& served : served_) {
    if (served.server && served.last_list && model::is_silicon(served.resource)) {
      return served.publish(parts_.clock.now());
    }
  }
}

void Supervisor::log_changes(const ServedResource& served, const UnitList& list) const {
  const NodeViewPtr view = parts_.desk.view();
  if (served.resource == model::Resource::neuroncore) return;  // its devices say the same
  std::set<std::string_view> unhealthy_before;
  if (served.last_list) {
    for (const UnitState& unit : *served.last_list) {
      if (!unit.healthy) unhealthy_before.insert(unit.id);
    }
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].healthy != unhealthy_before.contains(list[i].id)) continue;
    const auto unit = view->unit_of(served.resource, list[i].id);
    if (!unit) continue;
    const model::Health& health = view->health_of(served.resource, *unit);
    const bool broken = health.state == model::HealthState::unhealthy;
    if (list[i].healthy) {
      spdlog::info("available again resource={} id={}", model::resource_name(served.resource), list[i].id);
    } else if (broken) {
      spdlog::warn("unhealthy resource={} id={} reason={} detail=\"{}\" action=\"{}\"",
                   model::resource_name(served.resource), list[i].id, health.reason, health.sentence, health.action);
    } else {
      spdlog::info("in use through another resource: resource={} id={}", model::resource_name(served.resource),
                   list[i].id);
    }
  }
}

void Supervisor::ask_holders(SteadyTime asked_at) {
  parts_.admissions.asking_holders();
  if (asking_holders_) return;
  asking_holders_ = true;
  pod_resources_.list(kListDeadline, [&events = parts_.events, asked_at](Result<std::vector<rpc::PodDevices>> answer) {
    events.post(HoldersListed{asked_at, std::move(answer)});
  });
}

void Supervisor::handle(const HoldersListed& event) {
  asking_holders_ = false;
  if (event.answer) {
    holders_.set_listed(*event.answer, event.asked_at);
  } else {
    holders_.list_failed();
    holders_error_ = event.answer.error().message;
  }
  const bool first = !holders_known_;
  holders_known_ = true;
  apply_holders();
  if (first) connect_all();
  if (holders_.wants_fresh_checkpoint(parts_.clock.now())) parts_.admissions.want_checkpoint();
  if (parts_.desk.holds_anything()) {
    parts_.admissions.want_holders(event.answer ? ask_interval() : kAskAfterFailure);
  }
}

milliseconds Supervisor::ask_interval() const {
  const milliseconds most = parts_.settings.pod_resources_interval;
  const bool withheld = std::any_of(served_.begin(), served_.end(), [this](const ServedResource& served) {
    return parts_.desk.withholds(served.resource);
  });
  return withheld ? std::min(kAskWhileWithheld, most) : most;
}

void Supervisor::log_source() {
  const Holders::Source source = holders_.source();
  if (told_source_ == source) return;
  const bool was_without_list = told_source_ == Holders::Source::checkpoint || told_source_ == Holders::Source::nothing;
  if (source == Holders::Source::checkpoint) {
    spdlog::warn("who holds what is taken from the kubelet's checkpoint alone for now: {}", holders_error_);
  } else if (source == Holders::Source::nothing) {
    spdlog::warn("who holds what is not known; what was held stays held: the checkpoint cannot be read, and {}",
                 holders_error_);
  } else if (was_without_list) {
    spdlog::info("PodResources answers again");
  }
  told_source_ = source;
}

void Supervisor::apply_holders() {
  if (!holders_known_) return;
  auto shown = holders_.merged(parts_.clock.now());
  log_source();
  if (!shown) return;
  if (parts_.desk.wants_numbering(*shown)) {
    shown->numbering = read_numbering_evidence(parts_.settings.device_plugins_dir + "/" + std::string(kCheckpointName));
  }
  parts_.desk.reconcile(*shown);
  if (const auto* written = holders_.written()) parts_.desk.confirm(written->holdings, written->mark);
  // Whoever holds anything is asked after from time to time, however we came to know of him, and sooner once his
  // silicon is withheld from another name.
  if (parts_.desk.holds_anything() && !asking_holders_) parts_.admissions.want_holders_by(ask_interval());
  parts_.admissions.want_lists();
}

void Supervisor::look_whether_overslept(SteadyTime due) {
  if (parts_.clock.now() >= due + kOverslept) parts_.admissions.woke();
}

std::optional<Supervisor::Outcome> Supervisor::run_timers() {
  const SteadyTime now = parts_.clock.now();
  retry_due();
  const Admissions::Look before = parts_.admissions.look();
  if (watch_) {
    if (const auto outcome = handle_directory_events()) return outcome;
  }
  look_whether_overslept(now);  // in the lines above
  const AdmissionGate::Due due = parts_.admissions.due(before);
  const bool published = due.lists && publish_changed();
  if (!published && (due.same_list || due.list_for_doubt)) publish_again();
  if (due.lists) parts_.admissions.handed();
  // As of `now`: an answer that went out since the newest call was looked at is newer than the question.
  if (due.holders) ask_holders(now);
  if (check_.due(now)) ask_allocatable();
  return std::nullopt;
}

int Supervisor::poll_timeout_ms() {
  std::optional<SteadyTime> next;
  const auto consider = [&next](const std::optional<SteadyTime>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(watch_at_);
  consider(stands_at_);
  consider(check_.next());
  consider(parts_.admissions.next());
  for (const ServedResource& served : served_) {
    consider(served.retry_at);
    consider(served.check_at);
  }
  if (!next) return -1;
  const auto wait = std::chrono::ceil<milliseconds>(*next - parts_.clock.now()).count();
  constexpr long kHour = 3'600'000;
  return static_cast<int>(std::clamp<long>(wait, 0, kHour));
}

void Supervisor::tell_serving() const {
  if (!parts_.tell_serving) return;
  ServingState state;
  state.scanned = parts_.desk.view() != nullptr;
  for (const ServedResource& served : served_) state.resources.push_back({served.resource, serving_step(served)});
  parts_.tell_serving(state);
}

ServingStep Supervisor::serving_step(const ServedResource& served) const {
  if (!served.server) {
    const auto list = parts_.desk.unit_list(served.resource);
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

}  // namespace neuron::plugin
