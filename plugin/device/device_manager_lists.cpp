// DeviceManager's lists and holders; device_manager.cpp has the resources and their registration.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "plugin/device/device_manager.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAskAfterFailure{1000};
// If the kubelet does not list its holders, devices are served after this time: pods may hold them by claims, which no
// checkpoint has.
constexpr milliseconds kFirstAnswerPatience{5000};
constexpr milliseconds kAskWhileWithheld{500};  // the kubelet does not report the end of a container

}  // namespace

bool DeviceManager::publish_changed() {
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

void DeviceManager::publish(ServedResource& served, UnitList list) {
  log_changes(served, list);
  served.last_list = std::make_shared<const UnitList>(std::move(list));
  parts_.allocations.note_published(served.resource, *served.last_list);
  served.publish(parts_.clock.now());
}

void DeviceManager::publish_again() {
  for (ServedResource& served : served_) {
    if (served.server && served.last_list && model::has_cores(served.resource)) {
      return served.publish(parts_.clock.now());
    }
  }
}

// Changes of the list. Not by model::diff, which does not cover hardware held through another name.
void DeviceManager::log_changes(const ServedResource& served, const UnitList& list) const {
  const grant::NodeUnitsPtr node = parts_.allocations.node();
  const auto is_told_as_device = [&](int unit) {
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
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].healthy != unhealthy_before.contains(list[i].id)) continue;
    const auto unit = node->unit_of(served.resource, list[i].id);
    if (!unit || is_told_as_device(*unit)) continue;
    const model::Health& health = node->health_of(served.resource, *unit);
    const bool broken = health.state == model::HealthState::unhealthy;
    if (list[i].healthy) {
      spdlog::info("available again resource={} id={}", model::resource_name(served.resource), list[i].id);
    } else if (broken) {
      spdlog::warn("unhealthy resource={} id={} reason={}", model::resource_name(served.resource), list[i].id,
                   health.reason);
    } else {
      spdlog::info("held through another resource or a claim resource={} id={}", model::resource_name(served.resource),
                   list[i].id);
    }
  }
}

void DeviceManager::ask_holders(SteadyTime asked_at) {
  parts_.admissions.asking_holders();
  if (asking_holders_) return;
  asking_holders_ = true;
  parts_.kubelet.ask_holders(asked_at);
}

void DeviceManager::handle(const HoldersListed& event) {
  asking_holders_ = false;
  if (event.answer) {
    holders_.set_listed(*event.answer, event.asked_at);
    if (!holders_.list_is_whole()) holders_error_ = "the kubelet's list lacks this pod, so it is incomplete";
  } else {
    holders_.list_failed();
    holders_error_ = event.answer.error().message;
  }
  const bool first = !holders_known_;
  learn_holders(event);
  if (!holders_known_) return parts_.admissions.want_holders(kAskAfterFailure);
  apply_holders();
  if (first) connect_all();
  if (holders_.wants_fresh_checkpoint(parts_.clock.now()) || parts_.allocations.needs_newer_checkpoint()) {
    parts_.admissions.want_checkpoint();
  }
  if (!event.answer) {
    parts_.admissions.want_holders(ask_again_after_failure());
  } else if (parts_.allocations.holds_anything()) {
    parts_.admissions.want_holders(ask_interval());
  } else if (!holders_.list_is_whole()) {
    parts_.admissions.want_holders(kAskAfterFailure);
  }
}

// Whether the answer, or its failing for long enough, is what lists can be made by.
void DeviceManager::learn_holders(const HoldersListed& event) {
  list_failures_ = event.answer ? 0 : list_failures_ + 1;
  if (holders_known_) return;
  holders_known_ = event.answer && holders_.list_is_whole();
  const SteadyTime now = parts_.clock.now();
  if (holders_known_ || parts_.kubelet.kubelet() == 0) return unknown_since_.reset();
  if (!unknown_since_) unknown_since_ = now;
  if (now < *unknown_since_ + kFirstAnswerPatience) return;
  holders_known_ = true;
  spdlog::warn("claim holders unknown, offering devices anyway waited_s={}: {}",
               kFirstAnswerPatience / std::chrono::seconds{1}, holders_error_);
}

// A holder that is known may have ended; else it is about claims from before, which become ever less likely.
milliseconds DeviceManager::ask_again_after_failure() const {
  if (parts_.allocations.holds_anything()) return kAskAfterFailure;
  constexpr int kMostDoublings = 10;
  const milliseconds most = std::max(kAskAfterFailure, settings_.holders_interval);
  return std::min(kAskAfterFailure * (1 << std::min(list_failures_, kMostDoublings)), most);
}

milliseconds DeviceManager::ask_interval() const {
  const milliseconds most = settings_.holders_interval;
  const bool withheld = std::any_of(served_.begin(), served_.end(), [this](const ServedResource& served) {
    return parts_.allocations.withholds(served.resource);
  });
  const bool soon = withheld || parts_.allocations.needs_newer_checkpoint();
  return soon ? std::min(kAskWhileWithheld, most) : most;
}

void DeviceManager::log_source() {
  const Holders::Source source = holders_.source();
  if (told_source_ == source) return;
  const bool was_without_list = told_source_ == Holders::Source::checkpoint || told_source_ == Holders::Source::nothing;
  if (source == Holders::Source::checkpoint) {
    spdlog::warn("PodResources failing, using the checkpoint only: {}", holders_error_);
  } else if (source == Holders::Source::nothing) {
    spdlog::warn("PodResources and checkpoint failing, keeping the last known holders: {}", holders_error_);
  } else if (was_without_list) {
    spdlog::info("PodResources answering again");
  }
  told_source_ = source;
}

void DeviceManager::apply_holders() {
  if (!holders_known_) return;
  const auto shown = holders_.merged(parts_.clock.now());
  log_source();
  if (!shown) return;
  parts_.allocations.reconcile(*shown);
  if (const auto* written = holders_.written()) {
    parts_.allocations.confirm(written->allocations, written->version);
    const auto given_at = [this](model::Resource resource, const std::string& id) {
      return parts_.allocations.given_at(resource, id);
    };
    for (const auto& lost : check_.written(*written, registered(), given_at, parts_.clock.now())) register_again(lost);
  }
  // Holders are checked from time to time, whatever their source, and sooner once their hardware is withheld from
  // another name.
  if (parts_.allocations.holds_anything() && !asking_holders_) parts_.admissions.want_holders_by(ask_interval());
  parts_.admissions.want_lists();
}

void DeviceManager::run_due(const Admissions::Progress& before) {
  const SteadyTime now = parts_.clock.now();
  retry_due();
  const Admissions::Due due = parts_.admissions.due(before);
  const bool published = due.lists && publish_changed();
  if (!published && due.same_list) publish_again();
  if (due.lists || due.same_list) parts_.admissions.lists_sent();
  // As of `now`: an answer that went out since the newest call was looked at is newer than the question.
  if (due.holders) ask_holders(now);
  if (check_.due(now)) parts_.kubelet.ask_allocatable(now);
}

std::optional<SteadyTime> DeviceManager::next() const {
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
