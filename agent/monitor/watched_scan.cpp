#include "agent/monitor/watched_scan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron::monitor {

using model::ScanPart;

// Shared with the workers. An attempt is one call of one scan; only the newest counts.
template <typename Reading>
struct WatchedRead<Reading>::State {
  struct Silence {
    std::string since;
    bool hangs = false;  // false: its thread came back, the next scan reads the part again
  };

  Mutex mutex;
  std::function<void()> on_done GUARDED_BY(mutex);
  std::uint64_t attempt GUARDED_BY(mutex) = 0;
  bool running GUARDED_BY(mutex) = false;
  int given_up GUARDED_BY(mutex) = 0;                 // parts, since begin()
  std::optional<ScanPart> reading GUARDED_BY(mutex);  // by the newest attempt
  int checks GUARDED_BY(mutex) = 0;                   // at this read
  std::chrono::system_clock::time_point first_check GUARDED_BY(mutex);
  std::vector<model::Unanswered> left_out GUARDED_BY(mutex);  // by the newest attempt
  std::optional<Reading> result GUARDED_BY(mutex);
  std::vector<model::Unanswered> unanswered GUARDED_BY(mutex);  // of `result`
  std::map<ScanPart, Silence> silent GUARDED_BY(mutex);
  std::map<std::uint64_t, ScanPart> left_behind GUARDED_BY(mutex);  // attempts whose thread is not back

  // A given-up attempt is back from the read that hung.
  void come_back(std::uint64_t old) REQUIRES(mutex) {
    const auto found = left_behind.find(old);
    if (found == left_behind.end()) return;
    silent[found->second].hangs = false;
    left_behind.erase(found);
  }

  bool enter(std::uint64_t mine, const ScanPart& part) EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (mine != attempt) {
      come_back(mine);
      return false;
    }
    checks = 0;
    const auto found = silent.find(part);
    if (found == silent.end() || !found->second.hangs) {
      reading = part;
      return true;
    }
    reading.reset();
    if (!was_left_out(part)) left_out.push_back({part, found->second.since});
    return false;
  }

  [[nodiscard]] bool was_left_out(const ScanPart& part) const REQUIRES(mutex) {
    return std::ranges::find(left_out, part, &model::Unanswered::part) != left_out.end();
  }

  void finish(std::uint64_t mine, Reading scan) EXCLUDES(mutex) {
    std::function<void()> tell;
    {
      const MutexLock lock(mutex);
      if (mine != attempt) return come_back(mine);
      reading.reset();
      running = false;
      std::erase_if(silent,
                    [&](const auto& one) REQUIRES(mutex) { return !one.second.hangs && !was_left_out(one.first); });
      unanswered = left_out;
      std::ranges::sort(unanswered, {}, &model::Unanswered::part);
      if constexpr (std::is_same_v<Reading, model::HostScan>) scan.unanswered = unanswered;
      result = std::move(scan);
      tell = on_done;
    }
    if (tell) tell();
  }

  // A new attempt; the one before counts no more.
  std::uint64_t start_attempt() REQUIRES(mutex) {
    running = true;
    reading.reset();
    checks = 0;
    left_out.clear();
    return ++attempt;
  }

  // The number of a new attempt when the part that is being read was given up.
  std::optional<std::uint64_t> give_up() REQUIRES(mutex) {
    if (!running || !reading) return std::nullopt;
    if (++checks == 1) first_check = std::chrono::system_clock::now();
    if (checks <= std::max(kChecksPerBudget >> given_up, 1) || left_behind.size() >= kMaxLeftBehind)
      return std::nullopt;
    Silence& silence = silent[*reading];
    if (silence.since.empty()) silence.since = utc_text(first_check);
    silence.hangs = true;
    left_behind[attempt] = *reading;
    given_up = std::min(given_up + 1, kChecksPerBudget);
    return start_attempt();
  }
};

template <typename Reading>
WatchedRead<Reading>::WatchedRead(Run run, MakeScan make_scan, std::function<void()> on_done)
    : run_(std::move(run)), make_scan_(std::move(make_scan)), scan_(make_scan_()), state_(std::make_shared<State>()) {
  const MutexLock lock(state_->mutex);
  state_->on_done = std::move(on_done);
}

template <typename Reading>
WatchedRead<Reading>::WatchedRead(Workers& workers, MakeScan make_scan, std::function<void()> on_done)
    : WatchedRead([&workers](std::function<void()> job) { workers.run(std::move(job)); }, std::move(make_scan),
                  std::move(on_done)) {}

template <typename Reading>
WatchedRead<Reading>::~WatchedRead() {
  const MutexLock lock(state_->mutex);
  state_->on_done = nullptr;
  ++state_->attempt;
}

template <typename Reading>
void WatchedRead<Reading>::begin() {
  std::uint64_t attempt = 0;
  {
    const MutexLock lock(state_->mutex);
    state_->given_up = 0;
    attempt = state_->start_attempt();
  }
  run_attempt(attempt);
}

template <typename Reading>
void WatchedRead<Reading>::check() {
  std::optional<std::uint64_t> attempt;
  {
    const MutexLock lock(state_->mutex);
    attempt = state_->give_up();
  }
  if (!attempt) return;
  scan_ = make_scan_();
  run_attempt(*attempt);
}

template <typename Reading>
void WatchedRead<Reading>::run_attempt(std::uint64_t attempt) {
  run_([state = state_, scan = scan_, attempt] {
    state->finish(attempt, scan([&](const ScanPart& part) { return state->enter(attempt, part); }));
  });
}

template <typename Reading>
std::optional<Reading> WatchedRead<Reading>::take() {
  const MutexLock lock(state_->mutex);
  return std::exchange(state_->result, std::nullopt);
}

template <typename Reading>
std::vector<model::Unanswered> WatchedRead<Reading>::unanswered() const {
  const MutexLock lock(state_->mutex);
  return state_->unanswered;
}

template class WatchedRead<model::HostScan>;
template class WatchedRead<model::UsageSample>;

struct BoundedScans::End {
  Mutex mutex;
  std::condition_variable_any changed;
  bool has_come GUARDED_BY(mutex) = false;

  void come() EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    has_come = true;
    changed.notify_all();
  }
  // Whether it came within `time`.
  [[nodiscard]] bool wait(std::chrono::milliseconds time) EXCLUDES(mutex) {
    const SteadyTime until = std::chrono::steady_clock::now() + time;
    const MutexLock lock(mutex);
    while (!has_come && changed.wait_until(mutex, until) == std::cv_status::no_timeout) {
    }
    return std::exchange(has_come, false);
  }
};

BoundedScans::BoundedScans(Workers& workers, WatchedScan::MakeScan make_scan, std::chrono::milliseconds budget)
    : budget_(budget),
      end_(std::make_shared<End>()),
      scan_(workers, std::move(make_scan), [end = end_] { end->come(); }) {}

model::HostScan BoundedScans::scan() {
  scan_.begin();
  while (!end_->wait(budget_ / WatchedScan::kChecksPerBudget)) scan_.check();
  return scan_.take().value_or(model::HostScan{});
}

// Shared with the timers and with the read that runs.
struct UsageSampler::State {
  const Ports ports;
  const Clock& clock;
  const std::chrono::milliseconds interval;

  Mutex mutex;
  SteadyTime asked_at GUARDED_BY(mutex){};
  bool turning GUARDED_BY(mutex) = false;  // a timer is set
  Samples samples GUARDED_BY(mutex);

  // Of the timers' thread.
  std::optional<WatchedUsage> read;
  bool reading = false;
  std::vector<model::Unanswered> unanswered;  // by the newest sample

  State(Ports ports_in, const Clock& clock_in, std::chrono::milliseconds interval_in)
      : ports(std::move(ports_in)), clock(clock_in), interval(interval_in) {}
};

UsageSampler::UsageSampler(Ports ports, const Clock& clock, std::chrono::milliseconds interval)
    : state_(std::make_shared<State>(std::move(ports), clock, interval)) {
  state_->read.emplace(state_->ports.run, state_->ports.make_read, [weak = std::weak_ptr(state_)] {
    const auto state = weak.lock();
    if (state) state->ports.at(state->clock.now(), [state] { collect(state); });
  });
}

UsageSampler::Samples UsageSampler::ask() {
  const SteadyTime now = state_->clock.now();
  bool start = false;
  Samples samples;
  {
    const MutexLock lock(state_->mutex);
    state_->asked_at = now;
    start = !std::exchange(state_->turning, true);
    samples = state_->samples;
  }
  if (start) state_->ports.at(now, [state = state_] { turn(state); });
  return samples;
}

void UsageSampler::turn(const std::shared_ptr<State>& state) {
  const SteadyTime now = state->clock.now();
  {
    const MutexLock lock(state->mutex);
    state->turning = now - state->asked_at < kWanted;
    if (!state->turning) return;
  }
  if (!state->reading && state->ports.can_read()) {
    state->reading = true;
    state->read->begin();
    state->ports.at(now + kBudget / WatchedUsage::kChecksPerBudget, [state] { check(state); });
  }
  state->ports.at(now + state->interval, [state] { turn(state); });
}

void UsageSampler::check(const std::shared_ptr<State>& state) {
  if (!state->reading) return;
  state->read->check();
  state->ports.at(state->clock.now() + kBudget / WatchedUsage::kChecksPerBudget, [state] { check(state); });
}

void UsageSampler::collect(const std::shared_ptr<State>& state) {
  auto sample = state->read->take();
  if (!sample) return;
  state->reading = false;
  if (auto unanswered = state->read->unanswered(); unanswered != state->unanswered) {
    state->unanswered = std::move(unanswered);
    if (state->ports.on_unanswered) state->ports.on_unanswered(state->unanswered);
  }
  auto kept = std::make_shared<const model::UsageSample>(*std::move(sample));
  Samples gone;  // freed without the lock
  const MutexLock lock(state->mutex);
  const bool recent = state->samples.now && kept->at - state->samples.now->at < kWanted;
  gone = std::exchange(state->samples, Samples{recent ? state->samples.now : nullptr, std::move(kept)});
}

}  // namespace neuron::monitor
