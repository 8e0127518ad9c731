#include "plugin/device/pre_start_gate.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/core/catalogue.h"

namespace neuron::plugin {
namespace {

struct PhysicalCore {
  int core_id = 0;  // global logical id, for messages
  int device = 0;
  int physical = 0;
  std::vector<int> maybe_of;  // other logical cores that it may belong to, where the order is assumed
};

// What one look at the cores of one device found.
struct Finding {
  std::string busy;     // what holds one of them; "" when nothing does
  std::string unknown;  // what could not be read
};

struct Waiter {
  model::Resource resource{};
  std::vector<PhysicalCore> cores;  // by device
  PreStartGate::Done done;
  std::size_t next = 0;      // position of the first core that is not dealt with
  int look = 0;              // number of the newest look; answers to older ones do not count
  std::string busy;          // what the last look found
  std::string unknown;       // what nobody could tell
  bool has_silence = false;  // some device did not answer
};

std::vector<std::vector<int>> orders_of(const grant::NodeUnits& node, const model::NeuronDevice& device) {
  if (device.logical_to_physical) return {*device.logical_to_physical};
  const core::InstanceType* type = core::find_instance_type(node.snapshot().host.instance_type);
  const auto family = device.family ? device.family : type != nullptr ? type->family : std::nullopt;
  if (!family || !device.physical_cores) return {};
  return core::possible_logical_to_physical(*family, device.index, device.physical_cores->value);
}

// Physical cores behind a logical one: LNC of them. `own`: the logical cores of the container, ascending.
void add_physical_cores(const grant::NodeUnits& node, int core_id, const std::vector<int>& own,
                        std::vector<PhysicalCore>& cores) {
  const int index = node.device_of_core(core_id);
  const model::NeuronDevice* device = node.device(index);
  const auto& lnc = node.snapshot().host.lnc;
  if (device == nullptr || !lnc) return;
  const auto orders = orders_of(node, *device);
  const int first_id = index * node.topology().cores_per_device;
  const int first = (core_id - first_id) * lnc->value;
  for (int position = first; position < first + lnc->value; ++position) {
    if (orders.empty() || position >= static_cast<int>(orders[0].size())) return;
    PhysicalCore core{core_id, index, orders[0][static_cast<std::size_t>(position)], {}};
    for (const auto& order : orders) {
      const auto at = std::find(order.begin(), order.end(), core.physical);
      const int owner = first_id + static_cast<int>(at - order.begin()) / lnc->value;
      if (at != order.end() && !std::binary_search(own.begin(), own.end(), owner)) core.maybe_of.push_back(owner);
    }
    cores.push_back(std::move(core));
  }
}

Result<std::vector<PhysicalCore>> cores_of(const grant::NodeUnitsPtr& node, model::Resource resource,
                                           const std::vector<std::string>& ids) {
  if (!node) return fail(ErrorCode::unavailable, "not scanned yet");
  std::vector<int> own;
  for (const std::string& id : ids) {
    TRY_ASSIGN(const int unit, node->unit_of(resource, id));
    for (const int core : node->cores_of(resource, unit)) own.push_back(core);
  }
  std::sort(own.begin(), own.end());
  std::vector<PhysicalCore> cores;
  for (const int core : own) add_physical_cores(*node, core, own, cores);
  return cores;
}

std::string holder_pids(const grant::NodeUnits& node, const PhysicalCore& core) {
  const model::NeuronDevice* device = node.device(core.device);
  std::string pids;
  if (device == nullptr || !device->processes) return pids;
  for (const model::Process& process : *device->processes) {
    if (((process.core_mask.value_or(0) >> core.physical) & 1U) != 0) pids += " pid " + std::to_string(process.pid);
  }
  return pids;
}

std::string name_of(const PhysicalCore& core) {
  return "neuron" + std::to_string(core.device) + "/neuron_core" + std::to_string(core.physical);
}

Error still_busy(const std::string& busy) {
  return make_error(ErrorCode::deadline_exceeded, busy + " after " + std::to_string(PreStartGate::kTimeout.count()) +
                                                      " s; end the process that holds it, or restart the pod later");
}

}  // namespace

struct PreStartGate::State : std::enable_shared_from_this<State> {
  Allocations& allocations;
  MemoryInUse memory_in_use;
  Run run;
  Post post;
  const Clock& clock;
  Mutex mutex;
  std::map<int, Waiter> waiters GUARDED_BY(mutex);
  std::set<int> silent GUARDED_BY(mutex);  // devices whose last look hangs
  int next_ticket GUARDED_BY(mutex) = 0;
  bool cancelled GUARDED_BY(mutex) = false;

  State(Allocations& allocations_in, MemoryInUse memory, Run run_in, Post post_in, const Clock& clock_in)
      : allocations(allocations_in),
        memory_in_use(std::move(memory)),
        run(std::move(run_in)),
        post(std::move(post_in)),
        clock(clock_in) {}

  // In a job of `run`: may hang.
  [[nodiscard]] Finding read(const std::vector<PhysicalCore>& cores) const {
    Finding finding;
    for (const PhysicalCore& core : cores) {
      const auto bytes = memory_in_use(core.device, core.physical);
      if (!bytes) {
        finding.unknown += " " + name_of(core);
        continue;
      }
      if (*bytes == 0 || may_be_anothers(core)) continue;
      const grant::NodeUnitsPtr node = allocations.node();
      finding.busy = "core " + std::to_string(core.core_id) + " (" + name_of(core) + ") still has " +
                     std::to_string(*bytes) + " bytes of device memory in use" + (node ? holder_pids(*node, core) : "");
      return finding;
    }
    return finding;
  }

  [[nodiscard]] bool may_be_anothers(const PhysicalCore& core) const {
    if (core.maybe_of.empty()) return false;
    const std::vector<int> held = allocations.held_cores();
    return std::any_of(core.maybe_of.begin(), core.maybe_of.end(),
                       [&](int id) { return std::binary_search(held.begin(), held.end(), id); });
  }

  // The device that is next is free, or nobody can tell.
  static void pass_over(Waiter& waiter) {
    const int device = waiter.cores[waiter.next].device;
    while (waiter.next < waiter.cores.size() && waiter.cores[waiter.next].device == device) ++waiter.next;
  }

  static void pass_over_silent(Waiter& waiter) {
    waiter.unknown += " neuron" + std::to_string(waiter.cores[waiter.next].device) + " (does not answer)";
    waiter.has_silence = true;
    pass_over(waiter);
  }

  // Begins the look at the next device of a waiter, or lets the container start.
  void look(int ticket) EXCLUDES(mutex) {
    std::vector<PhysicalCore> cores;
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
      number = ++waiter.look;
      if (waiter.has_silence) budget /= 4;
    }
    if (cores.empty()) return finish(ticket, std::nullopt);
    run([self = shared_from_this(), ticket, number, cores] {
      self->answered(ticket, number, cores[0].device, self->read(cores));
    });
    post(clock.now() + budget, [self = shared_from_this(), ticket, number] { self->give_up(ticket, number); });
  }

  void answered(int ticket, int number, int device, Finding finding) EXCLUDES(mutex) {
    const bool is_busy = !finding.busy.empty();
    {
      const MutexLock lock(mutex);
      silent.erase(device);
      const auto found = waiters.find(ticket);
      if (found == waiters.end() || found->second.look != number) return;
      Waiter& waiter = found->second;
      ++waiter.look;  // in time
      waiter.busy = std::move(finding.busy);
      if (!is_busy) {
        waiter.unknown += finding.unknown;
        pass_over(waiter);
      }
    }
    if (!is_busy) return look(ticket);
    post(clock.now() + kRetryEvery, [self = shared_from_this(), ticket] { self->look(ticket); });
  }

  // The look did not come back.
  void give_up(int ticket, int number) EXCLUDES(mutex) {
    {
      const MutexLock lock(mutex);
      const auto found = waiters.find(ticket);
      if (found == waiters.end() || found->second.look != number) return;
      Waiter& waiter = found->second;
      silent.insert(waiter.cores[waiter.next].device);
      waiter.busy.clear();
      pass_over_silent(waiter);
    }
    look(ticket);
  }

  // kTimeout has passed.
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
      spdlog::warn("pre-start resource={}: nobody could tell whether memory is still held on{}; the container starts",
                   model::resource_name(waiter.resource), waiter.unknown);
    }
    waiter.done(std::move(error));
  }

  void cancel(const std::function<bool(const Waiter&)>& is_meant, const char* why) EXCLUDES(mutex) {
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

PreStartGate::PreStartGate(Allocations& allocations, MemoryInUse memory_in_use, Run run, Post post, const Clock& clock)
    : state_(std::make_shared<State>(allocations, std::move(memory_in_use), std::move(run), std::move(post), clock)) {}

PreStartGate::~PreStartGate() {
  cancel_all();
}

void PreStartGate::wait(model::Resource resource, const std::vector<std::string>& ids, Done done) {
  auto cores = cores_of(state_->allocations.node(), resource, ids);
  if (!cores) return done(cores.error());
  Waiter waiter;
  waiter.resource = resource;
  waiter.cores = *std::move(cores);
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
  state_->post(state_->clock.now() + kTimeout, [state = state_, ticket] { state->expire(ticket); });
  state_->look(ticket);
}

void PreStartGate::cancel(model::Resource resource) {
  state_->cancel([resource](const Waiter& waiter) { return waiter.resource == resource; },
                 "the plugin is moving to another socket; try again");
}

void PreStartGate::cancel_all() {
  {
    const MutexLock lock(state_->mutex);
    state_->cancelled = true;
  }
  state_->cancel([](const Waiter&) { return true; }, kShuttingDown);
}

}  // namespace neuron::plugin
