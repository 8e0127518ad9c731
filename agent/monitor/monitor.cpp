#include "agent/monitor/monitor.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace neuron::monitor {
namespace {

struct Job {
  SteadyTime when;
  std::function<void()> run;
};

struct Later {
  bool operator()(const Job& a, const Job& b) const { return a.when > b.when; }
};

// What moves without meaning anything once it was judged, so that a heartbeat is not a new state of the node.
void drop_counters(model::HostScan& host) {
  for (model::NeuronDevice& device : host.devices) {
    device.signals.heartbeat.reset();
    for (model::CoreSignals& core : device.cores) core.device_memory_bytes.reset();
  }
}

bool same_content(const model::Snapshot& a, const model::Snapshot& b) {
  return a.host == b.host && a.device_health == b.device_health && a.core_health == b.core_health &&
         a.efa_health == b.efa_health;
}

}  // namespace

// Shared with the thread, so that a thread that hangs in the kernel never touches freed memory.
struct Monitor::Worker {
  SnapshotStore& store;
  Scan scan;
  OnChange on_change;
  std::chrono::milliseconds interval;
  core::AssessMemory memory;
  std::uint64_t number = 0;

  Mutex mutex;
  std::condition_variable_any wake;
  bool stopping GUARDED_BY(mutex) = false;
  bool rescan GUARDED_BY(mutex) = false;
  bool done GUARDED_BY(mutex) = false;
  std::priority_queue<Job, std::vector<Job>, Later> jobs GUARDED_BY(mutex);
  std::thread thread;

  Worker(SnapshotStore& store_in, Scan scan_in, OnChange on_change_in, std::chrono::milliseconds interval_in)
      : store(store_in), scan(std::move(scan_in)), on_change(std::move(on_change_in)), interval(interval_in) {}

  void tick() {
    auto next = std::make_shared<model::Snapshot>();
    core::Assessment node = core::assess(scan(), memory, std::chrono::steady_clock::now());
    drop_counters(node.host);
    next->host = std::move(node.host);
    next->device_health = std::move(node.devices);
    next->core_health = std::move(node.cores);
    next->efa_health = std::move(node.efas);
    const model::SnapshotPtr last = store.newest();
    if (last && same_content(*last, *next)) return;
    next->number = ++number;
    store.publish(next);
    on_change(next);
  }

  [[nodiscard]] SteadyTime due(SteadyTime next_tick) const REQUIRES(mutex) {
    return jobs.empty() ? next_tick : std::min(next_tick, jobs.top().when);
  }

  void run() {
    SteadyTime next_tick = std::chrono::steady_clock::now();  // the first one at once
    for (;;) {
      std::function<void()> job;
      {
        const MutexLock lock(mutex);
        while (!stopping && !rescan && std::chrono::steady_clock::now() < due(next_tick)) {
          wake.wait_until(mutex, due(next_tick));
        }
        if (stopping) break;
        if (!jobs.empty() && jobs.top().when <= std::chrono::steady_clock::now()) {
          job = jobs.top().run;
          jobs.pop();
        }
        if (!job) rescan = false;
      }
      if (job) {
        job();
      } else {
        tick();
        next_tick = std::chrono::steady_clock::now() + interval;
      }
    }
    const MutexLock lock(mutex);
    done = true;
    wake.notify_all();
  }
};

Monitor::Monitor(SnapshotStore& store, Scan scan, OnChange on_change, std::chrono::milliseconds interval)
    : worker_(std::make_shared<Worker>(store, std::move(scan), std::move(on_change), interval)) {}

Monitor::~Monitor() {
  constexpr std::chrono::milliseconds kPatience{1000};
  static_cast<void>(stop(kPatience));
}

void Monitor::tick() {
  worker_->tick();
}

void Monitor::start() {
  worker_->thread = std::thread([worker = worker_] { worker->run(); });
}

void Monitor::rescan_now() {
  Worker& worker = *worker_;
  const MutexLock lock(worker.mutex);
  worker.rescan = true;
  worker.wake.notify_all();
}

void Monitor::post(SteadyTime when, std::function<void()> job) {
  Worker& worker = *worker_;
  const MutexLock lock(worker.mutex);
  worker.jobs.push(Job{when, std::move(job)});
  worker.wake.notify_all();
}

bool Monitor::stop(std::chrono::milliseconds deadline) {
  if (!worker_->thread.joinable()) return true;
  bool ended = false;
  {
    const SteadyTime until = std::chrono::steady_clock::now() + deadline;
    Worker& worker = *worker_;
    const MutexLock lock(worker.mutex);
    worker.stopping = true;
    worker.wake.notify_all();
    while (!worker.done && worker.wake.wait_until(worker.mutex, until) == std::cv_status::no_timeout) {
    }
    ended = worker.done;
  }
  if (ended) {
    worker_->thread.join();
  } else {
    worker_->thread.detach();
  }
  return ended;
}

}  // namespace neuron::monitor
