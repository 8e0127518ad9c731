#include "plugin/kubelet/memory_gate.h"

#include <spdlog/spdlog.h>

#include <map>
#include <set>

#include "agent/base/mutex.h"

namespace neuron::plugin {
namespace {

// Result of one check of the cores of one device.
struct Finding {
  std::string busy;     // what holds one of them; "" when nothing does
  std::string unknown;  // what could not be read
};

struct Waiter {
  std::string group;
  std::string subject;
  std::vector<MemoryGate::Core> cores;  // by device
  MemoryGate::Done done;
  std::size_t next = 0;      // position of the first core that is not dealt with
  int check = 0;             // number of the newest check; answers to older ones do not count
  std::string busy;          // result of the last check
  std::string unknown;       // the part that is unknown
  bool has_silence = false;  // some device did not answer
};

std::string name_of(const MemoryGate::Core& core) {
  return "neuron" + std::to_string(core.device) + "/neuron_core" + std::to_string(core.physical);
}

Error still_busy(const std::string& busy) {
  return make_error(ErrorCode::deadline_exceeded,
                    busy + " after " + std::to_string(MemoryGate::kTimeout.count()) +
                        " s; terminate the process that holds it, or restart the pod later");
}

}  // namespace

struct MemoryGate::State : std::enable_shared_from_this<State> {
  Ports ports;
  const Clock& clock;
  Mutex mutex;
  std::map<int, Waiter> waiters GUARDED_BY(mutex);
  std::set<int> silent GUARDED_BY(mutex);  // devices whose last check hangs
  int next_ticket GUARDED_BY(mutex) = 0;
  bool cancelled GUARDED_BY(mutex) = false;

  State(Ports ports_in, const Clock& clock_in) : ports(std::move(ports_in)), clock(clock_in) {}

  // In a job of `run`: may hang.
  [[nodiscard]] Finding read(const std::vector<Core>& cores) const {
    Finding finding;
    for (const Core& core : cores) {
      const auto bytes = ports.memory_in_use(core.device, core.physical);
      if (!bytes) {
        finding.unknown += " " + name_of(core);
        continue;
      }
      if (*bytes == 0 || (!core.maybe_of.empty() && ports.is_held(core.maybe_of))) continue;
      finding.busy = core.name + " (" + name_of(core) + ") still has " + std::to_string(*bytes) +
                     " bytes of device memory in use" + ports.owners(core.device, core.physical);
      return finding;
    }
    return finding;
  }

  // The next device is free, or its state is unknown.
  static void pass_over(Waiter& waiter) {
    const int device = waiter.cores[waiter.next].device;
    while (waiter.next < waiter.cores.size() && waiter.cores[waiter.next].device == device) ++waiter.next;
  }

  static void pass_over_silent(Waiter& waiter) {
    waiter.unknown += " neuron" + std::to_string(waiter.cores[waiter.next].device) + " (no answer)";
    waiter.has_silence = true;
    pass_over(waiter);
  }

  // Begins the check of the next device of a waiter, or lets the container start.
  void check(int ticket) EXCLUDES(mutex) {
    std::vector<Core> cores;
    int number = 0;
    std::chrono::milliseconds budget = kDeviceTimeout;
    {
      const MutexLock lock(mutex);
      const auto found = waiters.find(ticket);
      if (found == waiters.end()) return;
      Waiter& waiter = found->second;
      while (waiter.next < waiter.cores.size() && silent.contains(waiter.cores[waiter.next].device)) {
        pass_over_silent(waiter);
      }
      for (std::size_t at = waiter.next; at < waiter.cores.size(); ++at) {
        if (waiter.cores[at].device == waiter.cores[waiter.next].device) cores.push_back(waiter.cores[at]);
      }
      number = ++waiter.check;
      if (waiter.has_silence) budget /= 4;
    }
    if (cores.empty()) return finish(ticket, std::nullopt);
    ports.run([self = shared_from_this(), ticket, number, cores] {
      self->answered(ticket, number, cores[0].device, self->read(cores));
    });
    ports.post(clock.now() + budget, [self = shared_from_this(), ticket, number] { self->give_up(ticket, number); });
  }

  void answered(int ticket, int number, int device, Finding finding) EXCLUDES(mutex) {
    const bool is_busy = !finding.busy.empty();
    {
      const MutexLock lock(mutex);
      silent.erase(device);
      const auto found = waiters.find(ticket);
      if (found == waiters.end() || found->second.check != number) return;
      Waiter& waiter = found->second;
      ++waiter.check;  // in time
      waiter.busy = std::move(finding.busy);
      if (!is_busy) {
        waiter.unknown += finding.unknown;
        pass_over(waiter);
      }
    }
    if (!is_busy) return check(ticket);
    ports.post(clock.now() + kRetryEvery, [self = shared_from_this(), ticket] { self->check(ticket); });
  }

  // The check did not come back.
  void give_up(int ticket, int number) EXCLUDES(mutex) {
    {
      const MutexLock lock(mutex);
      const auto found = waiters.find(ticket);
      if (found == waiters.end() || found->second.check != number) return;
      Waiter& waiter = found->second;
      silent.insert(waiter.cores[waiter.next].device);
      waiter.busy.clear();
      pass_over_silent(waiter);
    }
    check(ticket);
  }

  // The time limit has passed.
  void expire(int ticket) EXCLUDES(mutex) {
    std::string busy;
    {
      const MutexLock lock(mutex);
      const auto found = waiters.find(ticket);
      if (found == waiters.end()) return;
      Waiter& waiter = found->second;
      busy = waiter.busy;
      if (busy.empty() && waiter.next < waiter.cores.size()) pass_over_silent(waiter);
    }
    finish(ticket, busy.empty() ? std::nullopt : std::optional(still_busy(busy)));
  }

  // Takes a waiter out and answers it outside the lock.
  void finish(int ticket, std::optional<Error> error) EXCLUDES(mutex) {
    Waiter waiter;
    {
      const MutexLock lock(mutex);
      const auto found = waiters.find(ticket);
      if (found == waiters.end()) return;
      waiter = std::move(found->second);
      waiters.erase(found);
    }
    if (!error && !waiter.unknown.empty()) {
      spdlog::warn("device memory state unknown, container start allowed {}:{}", waiter.subject, waiter.unknown);
    }
    waiter.done(std::move(error));
  }

  void cancel(const std::function<bool(const Waiter&)>& is_meant, const std::string& why) EXCLUDES(mutex) {
    std::vector<int> tickets;
    {
      const MutexLock lock(mutex);
      for (const auto& [ticket, waiter] : waiters) {
        if (is_meant(waiter)) tickets.push_back(ticket);
      }
    }
    for (const int ticket : tickets) finish(ticket, make_error(ErrorCode::unavailable, why));
  }
};

namespace {

constexpr const char* kShuttingDown = "the agent is shutting down";

}  // namespace

MemoryGate::MemoryGate(Ports ports, const Clock& clock) : state_(std::make_shared<State>(std::move(ports), clock)) {}

MemoryGate::~MemoryGate() {
  cancel_all();
}

void MemoryGate::wait(std::string group, std::string subject, std::vector<Core> cores, Done done) {
  Waiter waiter;
  waiter.group = std::move(group);
  waiter.subject = std::move(subject);
  waiter.cores = std::move(cores);
  waiter.done = std::move(done);
  int ticket = 0;
  bool cancelled = false;
  {
    const MutexLock lock(state_->mutex);
    cancelled = state_->cancelled;
    ticket = ++state_->next_ticket;
    state_->waiters.emplace(ticket, std::move(waiter));
  }
  if (cancelled) return state_->finish(ticket, make_error(ErrorCode::unavailable, kShuttingDown));
  state_->ports.post(state_->clock.now() + kTimeout, [state = state_, ticket] { state->expire(ticket); });
  state_->check(ticket);
}

void MemoryGate::cancel(const std::string& group, const std::string& why) {
  state_->cancel([&group](const Waiter& waiter) { return waiter.group == group; }, why);
}

void MemoryGate::cancel_all() {
  {
    const MutexLock lock(state_->mutex);
    state_->cancelled = true;
  }
  state_->cancel([](const Waiter&) { return true; }, kShuttingDown);
}

}  // namespace neuron::plugin
