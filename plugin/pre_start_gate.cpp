#include "plugin/pre_start_gate.h"

#include <algorithm>
#include <map>

namespace neuron::plugin {
namespace {

struct PhysicalCore {
  int core_id = 0;  // global logical id, for messages
  int device = 0;
  int physical = 0;
};

struct Waiter {
  Resource resource{};
  std::vector<PhysicalCore> cores;
  PreStartGate::Done done;
  SteadyTime deadline;
  std::string busy;  // what the last look found
};

// Physical cores behind a logical one: LNC of them, mapped by the driver where it may be asked.
std::vector<PhysicalCore> physical_cores(const NodeView& view, int core_id) {
  const int index = view.device_of_core(core_id);
  const model::NeuronDevice* device = view.device(index);
  const auto& lnc = view.snapshot().host.lnc;
  if (device == nullptr || !lnc) return {};
  std::vector<PhysicalCore> cores;
  const int first = (core_id - index * view.topology().cores_per_device) * lnc->value;
  for (int position = first; position < first + lnc->value; ++position) {
    int physical = position;
    if (device->logical_to_physical && position < static_cast<int>(device->logical_to_physical->size())) {
      physical = (*device->logical_to_physical)[static_cast<std::size_t>(position)];
    }
    cores.push_back({core_id, index, physical});
  }
  return cores;
}

std::string holder_pids(const NodeView& view, const PhysicalCore& core) {
  const model::NeuronDevice* device = view.device(core.device);
  std::string pids;
  if (device == nullptr || !device->processes) return pids;
  for (const model::Process& process : *device->processes) {
    if (((process.core_mask.value_or(0) >> core.physical) & 1U) != 0) pids += " pid " + std::to_string(process.pid);
  }
  return pids;
}

}  // namespace

struct PreStartGate::State {
  AllocationDesk& desk;
  MemoryInUse memory_in_use;
  Post post;
  const Clock& clock;
  Mutex mutex;
  std::map<int, Waiter> waiters GUARDED_BY(mutex);
  int next_ticket GUARDED_BY(mutex) = 0;
  bool cancelled GUARDED_BY(mutex) = false;

  State(AllocationDesk& desk_in, MemoryInUse memory, Post post_in, const Clock& clock_in)
      : desk(desk_in), memory_in_use(std::move(memory)), post(std::move(post_in)), clock(clock_in) {}

  // What still holds one of the cores, "" when none does. On the worker.
  std::string look(const std::vector<PhysicalCore>& cores) const {
    for (const PhysicalCore& core : cores) {
      const auto bytes = memory_in_use(core.device, core.physical);
      if (!bytes || *bytes == 0) continue;
      const NodeViewPtr view = desk.view();
      return "core " + std::to_string(core.core_id) + " (neuron" + std::to_string(core.device) + "/neuron_core" +
             std::to_string(core.physical) + ") still has " + std::to_string(*bytes) +
             " bytes of device memory in use" + (view ? holder_pids(*view, core) : "");
    }
    return "";
  }

  // Takes a waiter out and answers it outside the lock.
  void finish(int ticket, std::optional<Error> error) {
    Done done;
    {
      const MutexLock lock(mutex);
      const auto found = waiters.find(ticket);
      if (found == waiters.end()) return;
      done = std::move(found->second.done);
      waiters.erase(found);
    }
    done(std::move(error));
  }
};

namespace {

Error still_busy(const std::string& busy) {
  return make_error(ErrorCode::deadline_exceeded,
                    (busy.empty() ? std::string("the driver did not say whether the cores are free") : busy) +
                        " after " + std::to_string(PreStartGate::kPatience.count()) +
                        " s; end the process that holds it, or restart the pod later");
}

}  // namespace

PreStartGate::PreStartGate(AllocationDesk& desk, MemoryInUse memory_in_use, Post post, const Clock& clock)
    : state_(std::make_shared<State>(desk, std::move(memory_in_use), std::move(post), clock)) {}

PreStartGate::~PreStartGate() {
  cancel_all();
}

void PreStartGate::wait(Resource resource, const std::vector<std::string>& ids, Done done) {
  const NodeViewPtr view = state_->desk.view();
  Waiter waiter{resource, {}, std::move(done), state_->clock.now() + kPatience, ""};
  for (const std::string& id : ids) {
    const auto unit = view ? view->unit_of(resource, id) : fail(ErrorCode::unavailable, "not scanned yet");
    if (!unit) return waiter.done(unit.error());
    for (const int core : view->cores_of(resource, *unit)) {
      for (const PhysicalCore& physical : physical_cores(*view, core)) waiter.cores.push_back(physical);
    }
  }
  int ticket = 0;
  bool cancelled = false;
  {
    const MutexLock lock(state_->mutex);
    cancelled = state_->cancelled;
    ticket = ++state_->next_ticket;
    state_->waiters.emplace(ticket, std::move(waiter));
  }
  if (cancelled) return state_->finish(ticket, make_error(ErrorCode::unavailable, "the agent is shutting down"));

  struct Check {
    static void run(const std::shared_ptr<State>& state, int ticket) {
      std::vector<PhysicalCore> cores;
      {
        const MutexLock lock(state->mutex);
        const auto found = state->waiters.find(ticket);
        if (found == state->waiters.end()) return;
        cores = found->second.cores;
      }
      std::string busy = state->look(cores);
      if (busy.empty()) return state->finish(ticket, std::nullopt);
      {
        const MutexLock lock(state->mutex);
        if (const auto found = state->waiters.find(ticket); found != state->waiters.end()) {
          found->second.busy = std::move(busy);
        }
      }
      state->post(state->clock.now() + kRetryEvery, [state, ticket] { run(state, ticket); });
    }
  };
  state_->post(state_->clock.now(), [state = state_, ticket] { Check::run(state, ticket); });
}

std::optional<SteadyTime> PreStartGate::expire() {
  const SteadyTime now = state_->clock.now();
  std::vector<std::pair<int, std::string>> over;
  std::optional<SteadyTime> next;
  {
    const MutexLock lock(state_->mutex);
    for (const auto& [ticket, waiter] : state_->waiters) {
      if (waiter.deadline <= now) {
        over.emplace_back(ticket, waiter.busy);
      } else {
        next = next ? std::min(*next, waiter.deadline) : waiter.deadline;
      }
    }
  }
  for (const auto& [ticket, busy] : over) state_->finish(ticket, still_busy(busy));
  return next;
}

void PreStartGate::cancel(Resource resource) {
  std::vector<int> tickets;
  {
    const MutexLock lock(state_->mutex);
    for (const auto& [ticket, waiter] : state_->waiters) {
      if (waiter.resource == resource) tickets.push_back(ticket);
    }
  }
  for (const int ticket : tickets) {
    state_->finish(ticket, make_error(ErrorCode::unavailable, "the plugin is moving to another socket; try again"));
  }
}

void PreStartGate::cancel_all() {
  std::vector<int> tickets;
  {
    const MutexLock lock(state_->mutex);
    state_->cancelled = true;
    for (const auto& [ticket, waiter] : state_->waiters) tickets.push_back(ticket);
  }
  for (const int ticket : tickets) {
    state_->finish(ticket, make_error(ErrorCode::unavailable, "the agent is shutting down"));
  }
}

}  // namespace neuron::plugin
