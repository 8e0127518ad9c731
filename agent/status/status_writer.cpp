#include "agent/status/status_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/parse.h"

namespace neuron::status {

using std::chrono::milliseconds;

milliseconds spread_of(const std::string& node, milliseconds over) {
  const auto digest = sha256("neuron-agent start " + node);
  const std::uint32_t drawn = (std::uint32_t{digest[0]} << 24U) | (std::uint32_t{digest[1]} << 16U) |
                              (std::uint32_t{digest[2]} << 8U) | std::uint32_t{digest[3]};
  return milliseconds(static_cast<std::int64_t>(drawn) * over.count() >> 32U);
}

StatusWriter::StatusWriter(kube::Api& api, Settings settings, const Clock& clock)
    : api_(api),
      settings_(std::move(settings)),
      clock_(clock),
      starts_(clock.now() + spread_of(settings_.node, kSpread)),
      backoff_(kFirstRetry, kLongestRetry, settings_.seed),
      events_backoff_(kFirstRetry, kLongestRetry, settings_.seed + 1),
      event_writer_(api, settings_.node),
      gate_(api, settings_.node, settings_.startup_taint, settings_.seed + 2),
      chance_(settings_.seed) {}

// ---- From other threads

void StatusWriter::set(const model::SnapshotPtr& snapshot) {
  model::SnapshotPtr before;
  {
    const MutexLock lock(mutex_);
    before = newest_;
  }
  auto made = std::make_shared<const StatusReport>(report(snapshot->host, settings_.report));
  const Since since = before ? Since::before : Since::start;
  const MutexLock lock(mutex_);
  auto events = events_of(before ? before->host : model::HostScan{}, snapshot->host, open_faults_);
  newest_ = snapshot;
  report_ = std::move(made);
  for (NodeEvent& event : events) events_.add(std::move(event), settings_.wall(), since);
  loop_.wake();
}

void StatusWriter::set_registered(std::vector<std::string> names) {
  const MutexLock lock(mutex_);
  registered_ = std::move(names);
  loop_.wake();
}

WriterState StatusWriter::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

// ---- On the writing thread

void StatusWriter::run(const std::stop_token& stop) {
  loop_.run(stop, [this] { return turn(); });
}

milliseconds StatusWriter::turn() {
  std::vector<std::string> registered;
  {
    const MutexLock lock(mutex_);
    registered = registered_;
  }
  const milliseconds gate = gate_.turn(registered, clock_.now());
  return std::min(gate, turn_report());
}

milliseconds StatusWriter::turn_report() {
  constexpr milliseconds kLongest = std::chrono::minutes(1);
  ReportPtr report;
  {
    const MutexLock lock(mutex_);
    report = report_;
  }
  if (!report) return kLongest;
  const SteadyTime now = clock_.now();
  if (due(*report, now) <= now) update(*report, now);
  write_events(now);
  // Due changes have been written, or failed and wait.
  SteadyTime next = due(*report, now);
  if (seen_) {
    const MutexLock lock(mutex_);
    if (const auto event = events_.due()) next = std::min(next, std::max(*event, events_not_before_));
  }
  return std::clamp(std::chrono::ceil<milliseconds>(next - clock_.now()), milliseconds(0), kLongest);
}

// When the next call for labels and conditions is due.
SteadyTime StatusWriter::due(const StatusReport& report, SteadyTime now) const {
  if (!seen_) return std::max(report.problem ? now : starts_, not_before_);
  SteadyTime due = read_at_;
  const Change change = change_of(wanted_of(report));
  const SteadyTime free = bucket_.next();
  if (change == Change::state) due = std::min(due, free);
  if (change == Change::words) due = std::min(due, std::max(free, words_at_));
  return std::max(due, not_before_);
}

void StatusWriter::update(const StatusReport& report, SteadyTime now) {
  // A held condition may have been removed; applying it again would create it without the fields of others.
  if (!seen_ || read_at_ <= now || !seen_->held.empty()) {
    if (const auto read = refresh(report, now); !read) return finish(read, now);
  }
  const Wanted wanted = wanted_of(report);
  if (change_of(wanted) != Change::none) bucket_.spend(now);
  // Conditions first, since they contain the faults. A failure of one does not prevent the other.
  Result<void> written = write_conditions(wanted, now);
  if (auto labels = write_labels(wanted); written && !labels) written = std::move(labels);
  finish(written, now);
}

StatusWriter::Wanted StatusWriter::wanted_of(const StatusReport& report) const {
  Wanted wanted{report.labels, report.conditions, Force::no};
  if (!seen_) return wanted;
  if (report.keeps_ultraserver && labels_) {
    for (const auto& label : *labels_) {
      if (label.first.starts_with(kUltraServerPrefix)) wanted.labels.insert(label);
    }
  }
  std::erase_if(wanted.conditions, [&](const Condition& one) { return seen_->condition_owners.contains(one.type); });
  for (const auto& [key, owner] : seen_->label_owners) {
    if (!wanted.labels.contains(key)) continue;
    if (key.starts_with(kOwnPrefix)) {
      wanted.force = Force::yes;
    } else {
      wanted.labels.erase(key);
    }
  }
  return wanted;
}

StatusWriter::Change StatusWriter::change_of(const Wanted& wanted) const {
  if (labels_ != wanted.labels || !conditions_ || conditions_->size() != wanted.conditions.size()) return Change::state;
  bool words = false;
  for (std::size_t i = 0; i < wanted.conditions.size(); ++i) {
    const Condition& is = (*conditions_)[i].condition;
    const Condition& should = wanted.conditions[i];
    if (is.type != should.type || is.status != should.status || is.reason != should.reason) return Change::state;
    words = words || is.message != should.message;
  }
  return words ? Change::words : Change::none;
}

Result<void> StatusWriter::refresh(const StatusReport& report, SteadyTime now) {
  auto seen = read_node(api_, settings_.node);
  if (!seen) return fail(std::move(seen).error());
  heartbeat_ = seen_.has_value() && read_at_ <= now;  // not at the start, and not after a refusal
  take_over(*seen, report);
  seen_ = *std::move(seen);
  constexpr auto kTenth = std::chrono::duration_cast<milliseconds>(kReadInterval) / 10;
  read_at_ = now + kReadInterval +
             milliseconds(std::uniform_int_distribution<milliseconds::rep>(-kTenth.count(), kTenth.count())(chance_));
  log_shared(report);
  return {};
}

// Takes the agent's labels and conditions at the server as written last, also those of a predecessor.
void StatusWriter::take_over(const SeenNode& seen, const StatusReport& report) {
  labels_.emplace();
  const auto take_label = [&](const std::string& key) {
    if (const auto is = seen.labels.find(key); is != seen.labels.end()) labels_->insert(*is);
  };
  for (const std::string& key : seen.own_labels) take_label(key);
  conditions_.emplace();
  const auto take_condition = [&](const std::string& type) {
    const auto is = seen.conditions.find(type);
    if (is != seen.conditions.end()) conditions_->push_back({is->second.condition, is->second.last_transition});
  };
  // In the order of the report; an own condition that is no longer wanted makes the two differ. Those that others write
  // too are held and not compared.
  std::set<std::string> rest = seen.own_conditions;
  for (const HeldCondition& held : seen.held) rest.erase(held.type);
  for (const Condition& one : report.conditions) {
    if (rest.erase(one.type) != 0) take_condition(one.type);
  }
  for (const std::string& type : rest) take_condition(type);
}

void StatusWriter::log_shared(const StatusReport& report) {
  std::set<std::string> left;
  for (const Condition& one : report.conditions) {
    if (const auto owner = seen_->condition_owners.find(one.type); owner != seen_->condition_owners.end()) {
      left.insert("condition " + one.type + " left to " + owner->second + ", which also writes it");
    }
  }
  for (const auto& [key, owner] : seen_->label_owners) {
    if (report.labels.contains(key) && !key.starts_with(kOwnPrefix)) {
      left.insert("label " + key + " left to " + owner + ", which also writes it");
    }
  }
  if (left == left_) return;
  for (const std::string& one : left) spdlog::warn("node status shared with another writer: {}", one);
  if (left.empty()) spdlog::info("node status no longer shared with another writer");
  left_ = std::move(left);
}

Result<void> StatusWriter::write_labels(const Wanted& wanted) {
  if (labels_ == wanted.labels) return {};
  TRY(apply_labels(api_, {settings_.node, seen_->uid}, wanted.labels, wanted.force));
  labels_ = wanted.labels;
  const MutexLock lock(mutex_);
  ++state_.writes;
  return {};
}

Result<void> StatusWriter::write_conditions(const Wanted& wanted, SteadyTime now) {
  const WallTime wall = settings_.wall();
  std::vector<TimedCondition> timed;
  for (const Condition& one : wanted.conditions) {
    const auto seen = seen_->conditions.find(one.type);
    const auto written =
        std::ranges::find_if(*conditions_, [&](const TimedCondition& is) { return is.condition.type == one.type; });
    std::string since = utc_text(wall);
    if (written != conditions_->end()) {
      if (written->condition.status == one.status && !written->last_transition.empty())
        since = written->last_transition;
    } else if (seen != seen_->conditions.end() && seen->second.condition.status == one.status &&
               !seen->second.last_transition.empty()) {
      since = seen->second.last_transition;
    }
    timed.push_back({one, std::move(since)});
  }
  const bool heartbeat = std::exchange(heartbeat_, false) && !timed.empty();
  if (timed == *conditions_ && !heartbeat) return {};
  TRY(apply_conditions(api_, {settings_.node, seen_->uid}, timed, seen_->held, wall));
  conditions_ = std::move(timed);
  words_at_ = now + kMessagePause;
  const MutexLock lock(mutex_);
  ++state_.writes;
  return {};
}

void StatusWriter::finish(const Result<void>& written, SteadyTime now) {
  if (written) {
    backoff_.reset();
    not_before_ = {};
  } else {
    // Refused, or the result is unknown: read the node first.
    not_before_ = now + retry_after(written.error(), backoff_);
    seen_.reset();
  }
  const MutexLock lock(mutex_);
  const std::string error = written ? "" : written.error().message;
  if (error == state_.error && written.has_value() == state_.current) return;
  if (!written && error != state_.error) spdlog::warn("node status not updated: {}", error);
  if (written && !state_.error.empty()) spdlog::info("node status updates resumed");
  state_.error = error;
  state_.current = written.has_value();
}

milliseconds StatusWriter::retry_after(const Error& error, kube::Backoff& backoff) const {
  const bool is_refused = error.code == ErrorCode::permission_denied || error.code == ErrorCode::invalid_argument;
  const milliseconds pause = backoff.next();
  // The first times as after any failure: roles and policies take a moment to become effective.
  return is_refused && pause > kLongestRetry / 4 ? milliseconds(kRefusedRetry) : pause;
}

void StatusWriter::write_events(SteadyTime now) {
  while (seen_ && events_not_before_ <= now) {
    std::optional<PendingEvent> event;
    {
      const MutexLock lock(mutex_);
      event = events_.take(now);
    }
    if (!event) return;
    const auto written = event_writer_.write(*event, seen_->uid);
    if (written) {
      events_backoff_.reset();
      if (!events_error_.empty()) spdlog::info("node events resumed");
      events_error_.clear();
      continue;
    }
    if (events_error_ != written.error().message) spdlog::warn("node event not written: {}", written.error().message);
    events_error_ = written.error().message;
    events_not_before_ = now + retry_after(written.error(), events_backoff_);
    const MutexLock lock(mutex_);
    events_.put_back(*std::move(event));
  }
}

}  // namespace neuron::status
