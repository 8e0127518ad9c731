#include "agent/monitor/monitor.h"

#include <algorithm>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/model/snapshot.h"

namespace neuron::monitor {
namespace {

struct Job {
  SteadyTime when;
  std::function<void()> run;
};

struct Later {
  bool operator()(const Job& a, const Job& b) const { return a.when > b.when; }
};

}  // namespace

// Shared with the thread and with the scan that reports its end.
struct Monitor::Loop {
  SnapshotStore& store;
  OnChange on_change;
  Timing timing;
  health::AssessMemory memory;
  std::uint64_t number = 0;
  std::uint64_t generation = 0;
  model::HostScan last_state;  // of `generation`, without counters
  std::optional<WatchedScan> scan;
  bool scanning = false;  // of the loop's thread, as are the times
  SteadyTime next_scan;
  SteadyTime next_check;  // at the scan that runs

  Mutex mutex;
  std::condition_variable_any wake;
  bool stopping GUARDED_BY(mutex) = false;
  bool rescan GUARDED_BY(mutex) = false;
  bool scan_has_ended GUARDED_BY(mutex) = false;
  bool done GUARDED_BY(mutex) = false;
  std::priority_queue<Job, std::vector<Job>, Later> jobs GUARDED_BY(mutex);
  std::thread thread;

  Loop(SnapshotStore& store_in, OnChange on_change_in, Timing timing_in)
      : store(store_in), on_change(std::move(on_change_in)), timing(timing_in) {}

  // Every scan is published; `on_change` is called for a new generation only.
  void publish(model::HostScan host) {
    auto next = std::make_shared<model::Snapshot>();
    next->host = health::assess(std::move(host), memory, std::chrono::steady_clock::now()).host;
    model::HostScan state = model::without_counters(next->host);
    const bool changed = generation == 0 || state != last_state;
    if (changed) {
      ++generation;
      last_state = std::move(state);
    }
    next->number = ++number;
    next->generation = generation;
    store.publish(next);
    if (changed) on_change(next);
  }

  void note_end() EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    scan_has_ended = true;
    wake.notify_all();
  }

  [[nodiscard]] bool has_work(SteadyTime now) const REQUIRES(mutex) {
    return stopping || scan_has_ended || (rescan && !scanning) || due() <= now;
  }

  [[nodiscard]] SteadyTime due() const REQUIRES(mutex) {
    const SteadyTime next = scanning ? next_check : next_scan;
    return jobs.empty() ? next : std::min(next, jobs.top().when);
  }

  // Waits for the next thing to do; false: stop. Gives a job that is due, if any.
  [[nodiscard]] bool wait(std::function<void()>& job) EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    while (!has_work(std::chrono::steady_clock::now())) wake.wait_until(mutex, due());
    if (!jobs.empty() && jobs.top().when <= std::chrono::steady_clock::now()) {
      job = jobs.top().run;
      jobs.pop();
    }
    return !stopping;
  }

  [[nodiscard]] bool take_end() EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return std::exchange(scan_has_ended, false);
  }

  [[nodiscard]] bool take_rescan() EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return std::exchange(rescan, false);
  }

  void drive_scan() EXCLUDES(mutex) {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (take_end()) {
      scanning = false;
      if (auto host = scan->take()) publish(*std::move(host));
      next_scan = std::chrono::steady_clock::now() + timing.interval;
    } else if (scanning && now >= next_check) {
      scan->check();
      next_check = now + timing.budget / WatchedScan::kChecksPerBudget;
    } else if (!scanning && (take_rescan() || now >= next_scan)) {
      scanning = true;
      next_check = now + timing.budget / WatchedScan::kChecksPerBudget;
      scan->begin();
    }
  }

  void run() EXCLUDES(mutex) {
    next_scan = std::chrono::steady_clock::now();
    for (std::function<void()> job; wait(job); job = nullptr) {
      if (job) job();
      drive_scan();
    }
    const MutexLock lock(mutex);
    done = true;
    wake.notify_all();
  }
};

Monitor::Monitor(SnapshotStore& store, Workers& workers, WatchedScan::MakeScan make_scan, OnChange on_change,
                 Timing timing)
    : loop_(std::make_shared<Loop>(store, std::move(on_change), timing)) {
  loop_->scan.emplace(workers, std::move(make_scan), [weak = std::weak_ptr(loop_)] {
    if (const auto loop = weak.lock()) loop->note_end();
  });
}

Monitor::~Monitor() {
  constexpr std::chrono::milliseconds kStopTimeout{1000};
  static_cast<void>(stop(kStopTimeout));
}

void Monitor::start() {
  loop_->thread = std::thread([loop = loop_] { loop->run(); });
}

void Monitor::rescan_now() {
  Loop& loop = *loop_;
  const MutexLock lock(loop.mutex);
  loop.rescan = true;
  loop.wake.notify_all();
}

void Monitor::post(SteadyTime when, std::function<void()> job) {
  Loop& loop = *loop_;
  const MutexLock lock(loop.mutex);
  loop.jobs.push(Job{when, std::move(job)});
  loop.wake.notify_all();
}

bool Monitor::stop(std::chrono::milliseconds deadline) {
  if (!loop_->thread.joinable()) return true;
  bool ended = false;
  {
    const SteadyTime until = std::chrono::steady_clock::now() + deadline;
    Loop& loop = *loop_;
    const MutexLock lock(loop.mutex);
    loop.stopping = true;
    loop.wake.notify_all();
    while (!loop.done && loop.wake.wait_until(loop.mutex, until) == std::cv_status::no_timeout) {
    }
    ended = loop.done;
  }
  if (ended) {
    loop_->thread.join();
  } else {
    loop_->thread.detach();
  }
  return ended;
}

}  // namespace neuron::monitor
