#include "plugin/device/registration_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

// A server ends its streams and unlinks its socket at about the same time, in either order.
constexpr milliseconds kEndTakes{250};
constexpr std::size_t kMostOthers = 64;  // a directory full of sockets is no reason to grow
constexpr std::size_t kMostNamed = 4;

std::set<std::string> healthy_ids(const UnitList& units) {
  std::set<std::string> ids;
  for (const UnitState& unit : units) {
    if (unit.healthy) ids.insert(unit.id);
  }
  return ids;
}

std::set<std::string> ids_of(const model::Allocatable& allocatable, model::Resource resource) {
  const auto found = allocatable.find(std::string(model::resource_name(resource)));
  return found == allocatable.end() ? std::set<std::string>() : found->second;
}

}  // namespace

RegistrationCheck::RegistrationCheck(milliseconds pace, Listening listening)
    : pace_(pace), listening_(std::move(listening)) {}

void RegistrationCheck::other_appeared(const std::string& name, SteadyTime now) {
  if (others_.size() >= kMostOthers && !others_.contains(name)) return;
  others_[name] = {now, now, std::nullopt};
  ask_by(now + kSettled);
}

void RegistrationCheck::other_vanished(const std::string& name, SteadyTime now) {
  const auto found = others_.find(name);
  if (found == others_.end() || found->second.gone_at) return;
  found->second.gone_at = now;
  found->second.seen_at = now;
  ask_by(now + kSoon);
}

void RegistrationCheck::ask_by(SteadyTime at) {
  ask_at_ = std::min(ask_at_.value_or(at), at);
}

std::optional<SteadyTime> RegistrationCheck::next() const {
  return asking_ ? std::nullopt : ask_at_;
}

bool RegistrationCheck::due(SteadyTime now) {
  if (!ask_at_) ask_at_ = now + pace_;
  if (asking_ || now < *ask_at_) return false;
  for (auto& [name, other] : others_) {
    if (other.gone_at) continue;
    if (listening_(name)) {
      other.seen_at = now;
    } else {
      other.gone_at = now;
    }
  }
  asking_ = true;
  ask_at_ = now + pace_;
  return true;
}

// Another plugin ended while this was registered.
bool RegistrationCheck::other_gone_since(const Registered& one) const {
  return std::any_of(others_.begin(), others_.end(), [&](const auto& entry) {
    return entry.second.gone_at && one.registered_at < *entry.second.gone_at;
  });
}

// Another plugin is gone, and the kubelet's answer does not show whether it was this resource's.
bool RegistrationCheck::lost_unseen(const Registered& one, bool answer_missing) const {
  const bool same_either_way = answer_missing || healthy_ids(*one.units).empty();
  return std::any_of(others_.begin(), others_.end(), [&](const auto& entry) {
    const Other& other = entry.second;
    if (!other.gone_at || one.registered_at >= *other.gone_at) return false;
    return same_either_way || one.published_at >= other.seen_at - kEndTakes;
  });
}

bool RegistrationCheck::differs(const Registered& one, const model::Allocatable& allocatable, SteadyTime asked_at) {
  Record& record = records_[one.resource];
  if (healthy_ids(*one.units) == ids_of(allocatable, one.resource)) {
    record.differs_since.reset();
    return false;
  }
  const SteadyTime touched_at = std::max(one.registered_at, one.published_at);
  if (!record.differs_since || *record.differs_since < touched_at) record.differs_since = asked_at;
  return asked_at - *record.differs_since >= kSoon || other_gone_since(one);
}

std::vector<RegistrationCheck::Lost> RegistrationCheck::answered(SteadyTime asked_at,
                                                                 const Result<model::Allocatable>& allocatable,
                                                                 const std::vector<Registered>& registered,
                                                                 SteadyTime now) {
  asking_ = false;
  std::vector<Lost> all;
  bool undecided = false;
  for (const Registered& one : registered) {
    Record& record = records_[one.resource];
    std::string why;
    if (lost_unseen(one, !allocatable.has_value())) {
      why = "another plugin exited, and the kubelet's answer does not identify the plugin of the listed devices";
    } else if (const SteadyTime touched_at = std::max(one.registered_at, one.published_at);
               !allocatable || touched_at + kSettled > asked_at) {
      if (!allocatable || (!other_gone_since(one) && !record.differs_since)) continue;  // the next question will do
      undecided = true;
      ask_by(touched_at + kSettled);
      continue;
    } else if (differs(one, *allocatable, asked_at)) {
      why = fmt::format("the kubelet lists {} healthy units instead of {}", ids_of(*allocatable, one.resource).size(),
                        healthy_ids(*one.units).size());
    } else {
      if (record.differs_since) ask_by(now + kSoon);
      continue;
    }
    if (auto lost = lose(one.resource, why, now)) {
      all.push_back(*std::move(lost));
    } else {
      undecided = true;
      ask_by(*record.lost_at + record.pause);
    }
  }
  if (!undecided) std::erase_if(others_, [](const auto& other) { return other.second.gone_at.has_value(); });
  return all;
}

std::optional<RegistrationCheck::Lost> RegistrationCheck::lose(model::Resource resource, const std::string& why,
                                                               SteadyTime now) {
  Record& record = records_[resource];
  if (record.lost_at && now < *record.lost_at + record.pause) return std::nullopt;
  const bool afresh = !record.lost_at || now - *record.lost_at > kCalm;
  record.times = afresh ? 1 : record.times + 1;
  record.pause = afresh ? milliseconds(kFirstPause) : std::min<milliseconds>(record.pause * 2, kLongestPause);
  record.lost_at = now;
  record.differs_since.reset();
  return Lost{resource, why + "; " + names_of_others(), record.times};
}

std::vector<RegistrationCheck::Lost> RegistrationCheck::written(const Checkpoint& checkpoint,
                                                                const std::vector<Registered>& registered,
                                                                const GivenAt& given_at, SteadyTime now) {
  if (checkpoint.version == 0 || checkpoint.version == version_) return {};
  const bool is_first = std::exchange(version_, checkpoint.version) == 0;
  const SteadyTime before = std::exchange(read_at_, now);
  for (const Registered& one : registered) {
    auto& since = records_[one.resource].served_since;
    if (!since) since = one.registered_at;
  }
  std::set<Entry> entries;
  std::map<model::Resource, std::string> why;
  for (const model::Allocation& one : checkpoint.allocations) {
    Entry entry{one.pod_uid, one.container, one.resource_name};
    const bool is_known = is_first || entries_.contains(entry);
    entries.insert(std::move(entry));
    const auto resource = model::parse_resource(one.resource_name);
    if (is_known || !resource) continue;
    const bool is_registered =
        std::ranges::any_of(registered, [&](const Registered& each) { return each.resource == *resource; });
    if (!is_registered || before < *records_[*resource].served_since + kPredecessor) continue;
    const auto is_ours = [&](const std::string& id) {
      const auto given = given_at(*resource, id);
      return given && *given >= before - kAnswerLasts;
    };
    if (std::all_of(one.ids.begin(), one.ids.end(), is_ours)) continue;
    why.try_emplace(*resource,
                    fmt::format("container {} of the pod with uid {} was allocated {} units by another plugin",
                                printable(one.container, 63), printable(one.pod_uid, 64), one.ids.size()));
  }
  entries_ = std::move(entries);
  std::vector<Lost> all;
  for (const auto& [resource, text] : why) {
    if (auto lost = lose(resource, text, now)) all.push_back(*std::move(lost));
  }
  return all;
}

std::string RegistrationCheck::names_of_others() const {
  std::vector<std::pair<SteadyTime, std::string>> newest_first;
  for (const auto& [name, other] : others_) {
    newest_first.emplace_back(other.appeared_at, printable(name) + (other.gone_at ? " (gone)" : ""));
  }
  if (newest_first.empty()) return "no other plugin socket found";
  std::sort(newest_first.rbegin(), newest_first.rend());
  std::string text = "other plugin sockets:";
  for (std::size_t i = 0; i < std::min(newest_first.size(), kMostNamed); ++i) {
    text += (i == 0 ? " " : ", ") + newest_first[i].second;
  }
  if (newest_first.size() > kMostNamed) text += fmt::format(" and {} more", newest_first.size() - kMostNamed);
  return text;
}

}  // namespace neuron::plugin
