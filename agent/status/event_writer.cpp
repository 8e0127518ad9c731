#include "agent/status/node_events.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/base/clock.h"
#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::status {
namespace {

using Json = nlohmann::json;

constexpr const char* kEvents = "/api/v1/namespaces/default/events";

}  // namespace

// ---- Pending events

void PendingEvents::add(NodeEvent event, WallTime at, Since since) {
  const bool at_start = since == Since::start;
  const std::string subject = event.subject;
  const auto [found, is_new] = waiting_.try_emplace(subject, PendingEvent{event, at, at, 1, at_start});
  if (is_new) return;
  PendingEvent& same = found->second;
  merge(same.event, std::move(event));
  same.last = at;
  ++same.times;
  same.only_at_start = false;
}

void PendingEvents::put_back(PendingEvent event) {
  const std::string subject = event.event.subject;
  for (const std::string& unit : event.event.units) again_at_.erase({subject, unit});
  const auto [found, is_new] = waiting_.try_emplace(subject, event);
  if (is_new) return;
  PendingEvent& same = found->second;
  merge(event.event, std::move(same.event));
  same.event = std::move(event.event);
  same.first = event.first;
  same.times += event.times;
}

SteadyTime PendingEvents::due_of(const NodeEvent& event) const {
  const SteadyTime free = bucket_.next();
  SteadyTime first = event.units.empty() ? free : SteadyTime::max();
  for (const std::string& unit : event.units) {
    const auto again = again_at_.find({event.subject, unit});
    first = std::min(first, again == again_at_.end() ? free : again->second);
  }
  return std::max(free, first);
}

std::optional<SteadyTime> PendingEvents::due() const {
  std::optional<SteadyTime> due;
  for (const auto& [subject, one] : waiting_) due = due ? std::min(*due, due_of(one.event)) : due_of(one.event);
  return due;
}

std::optional<PendingEvent> PendingEvents::take(SteadyTime now) {
  auto next = waiting_.end();
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    if (due_of(at->second.event) > now) continue;
    if (next == waiting_.end() || (at->second.event.is_warning && !next->second.event.is_warning)) next = at;
  }
  if (next == waiting_.end()) return std::nullopt;
  bucket_.spend(now);
  PendingEvent event = std::move(next->second);
  waiting_.erase(next);
  for (const std::string& unit : event.event.units) again_at_[{event.event.subject, unit}] = now + kSamePause;
  return event;
}

// ---- Writing

std::string event_name(const NodeRef& node, const NodeEvent& event) {
  constexpr std::size_t kMaxNode = 200, kDigits = 16;
  std::string name = node.name.substr(0, kMaxNode);
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return name + "." + sha256_hex(node.uid + "/" + event.subject).substr(0, kDigits);
}

// False: one of that name exists.
Result<bool> EventWriter::create(const PendingEvent& event, const NodeRef& node, const std::string& name) {
  const Json body{{"apiVersion", "v1"},
                  {"kind", "Event"},
                  {"metadata", {{"name", name}, {"namespace", "default"}}},
                  {"involvedObject", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node.name}, {"uid", node.uid}}},
                  {"reason", event.event.reason},
                  {"message", message_of(event.event)},
                  {"type", event.event.is_warning ? "Warning" : "Normal"},
                  {"source", {{"component", kFieldManager}, {"host", node.name}}},
                  {"reportingComponent", kFieldManager},
                  {"reportingInstance", node.name},
                  {"firstTimestamp", utc_text(event.first)},
                  {"lastTimestamp", utc_text(event.last)},
                  {"count", event.times}};
  const kube::ApiCall call{.method = kube::Method::create, .path = kEvents, .body = body.dump()};
  TRY_ASSIGN(kube::ApiReply reply, api_.call(call));
  auto made = kube::body_of(std::move(reply), call);
  if (!made && made.error().code == ErrorCode::failed_precondition) return false;
  if (!made) return fail(std::move(made).error());
  counts_[name] = event.times;
  return true;
}

// False: that name no longer exists; the server deletes events after an hour.
Result<bool> EventWriter::count_up(const PendingEvent& event, const std::string& name) {
  Json change{{"lastTimestamp", utc_text(event.last)}};
  const auto patch = [&]() -> Result<std::optional<Json>> {
    const kube::ApiCall call{
        .method = kube::Method::merge_patch, .path = std::string(kEvents) + "/" + name, .body = change.dump()};
    TRY_ASSIGN(kube::ApiReply reply, api_.call(call));
    const auto body = kube::body_of(std::move(reply), call);
    if (!body && body.error().code == ErrorCode::not_found) return std::optional<Json>();
    if (!body) return fail(body.error());
    TRY_ASSIGN(Json stored, kube::parse_object(*body, "the Event"));
    return std::optional<Json>(std::move(stored));
  };
  std::optional<int>& count = counts_[name];
  if (!count) {  // of a predecessor
    TRY_ASSIGN(const auto stored, patch());
    if (!stored) return false;
    const Json* counted = kube::member_of(*stored, {"count"});
    constexpr int kMost = 1'000'000'000;
    count = counted != nullptr && counted->is_number_integer()
                ? static_cast<int>(std::clamp<std::int64_t>(counted->get<std::int64_t>(), 0, kMost))
                : 1;
  }
  change["count"] = *count + event.times;
  change["message"] = message_of(event.event);
  TRY_ASSIGN(const auto stored, patch());
  if (!stored) return false;
  *count += event.times;
  return true;
}

Result<void> EventWriter::write(const PendingEvent& event, const std::string& node_uid) {
  const NodeRef node{node_, node_uid};
  const std::string name = event_name(node, event.event);
  if (counts_.contains(name)) {
    TRY_ASSIGN(const bool counted, count_up(event, name));
    if (counted) return {};
    counts_.erase(name);
  }
  TRY_ASSIGN(const bool created, create(event, node, name));
  if (created) return {};
  counts_[name] = std::nullopt;
  if (event.only_at_start) return {};
  TRY_ASSIGN(const bool counted, count_up(event, name));
  if (!counted)
    return fail(ErrorCode::unavailable, "the event " + name + " was deleted during the update; writing it again");
  return {};
}

}  // namespace neuron::status
