#include "plugin/dra/claim/plugin_holders.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/hardware.h"

namespace neuron::plugin::dra {
namespace {

using model::Resource;

constexpr std::chrono::hours kForEver{24 * 365};
constexpr int kMaxUnit = 65535;

Hardware hardware_of_unit(const model::HostScan& host, Resource resource, const std::string& id,
                          std::optional<int> lnc) {
  constexpr std::string_view kEfa = "rdmap";  // of the driver's names: an interface that the scan lacks is held, too
  if (resource == Resource::efa) {
    const bool is_here = std::ranges::any_of(host.efas, [&](const auto& efa) { return efa.name == id; });
    return is_here || id.starts_with(kEfa) ? Hardware{{}, {id}} : Hardware{};
  }
  const auto unit = parse_int(id, 0, kMaxUnit);
  if (!unit) return {};
  if (resource == Resource::neuroncore) return core::possible_hardware_of(*unit, lnc, host);
  return core::possible_hardware_of(core::DeviceName{*unit}, host);
}

// The first that holds some of it; nullptr: none.
const PluginHolder* holder_of(const PluginHolders& holders, const Hardware& hardware) {
  const auto found = std::ranges::find_if(
      holders, [&](const PluginHolder& holder) { return overlap(hardware, holder.hardware).has_value(); });
  return found == holders.end() ? nullptr : &*found;
}

// A pod that only the checkpoint names is known by its uid.
std::string container_of(const model::Allocation& allocation) {
  const std::string name = model::holder_name(allocation);
  return name.empty() ? model::holder_of(allocation) : name;
}

// Whether an error differs from the last one, which it replaces.
bool is_new(std::string& last, const std::string& error) {
  return std::exchange(last, error) != error;
}

}  // namespace

PluginHolders plugin_holders(const grant::NodeUnits& node, const std::vector<model::Allocation>& listed,
                             const std::string& driver, const core::NumberingEvidence& numbering) {
  PluginHolders holders;
  const model::HostScan& host = node.snapshot().host;
  const auto lnc = numbering.given.empty() ? std::nullopt : core::lnc_in_use(numbering, host);
  for (const model::Allocation& allocation : listed) {
    PluginHolder holder{container_of(allocation), allocation.resource_name, !allocation.claim.empty(), {}};
    if (holder.is_claim && holder.resource != driver) {
      for (const std::string& id : allocation.ids) {
        if (const auto name = core::parse_pool_name(id)) holder.hardware.add(core::possible_hardware_of(*name, host));
      }
    } else if (const auto resource = model::parse_resource(holder.resource); resource && !holder.is_claim) {
      for (const std::string& id : allocation.ids) holder.hardware.add(hardware_of_unit(host, *resource, id, lnc));
    }
    if (!holder.hardware.empty()) holders.push_back(std::move(holder));
  }
  return holders;
}

void taint_held(Pool& pool, const grant::NodeUnits& node, const PluginHolders& holders, const std::string& driver) {
  if (holders.empty()) return;
  for (PoolDevice& device : pool.devices) {
    const auto hardware = hardware_of(node, device.name);
    const PluginHolder* holder = hardware ? holder_of(holders, *hardware) : nullptr;
    if (holder == nullptr) continue;
    device.unhealthy = true;
    device.taints.push_back({driver + "/held", holder->is_claim ? "other-driver" : "device-plugin", "NoSchedule"});
  }
}

std::optional<Error> conflict(const PluginHolders& holders, const Hardware& hardware) {
  const PluginHolder* holder = holder_of(holders, hardware);
  if (holder == nullptr) return std::nullopt;
  return make_error(
      ErrorCode::failed_precondition, RefusalReason::held_by_plugin,
      overlap(hardware, holder->hardware).value_or("") + " is held by " + holder->container +
          ", which was allocated it through " + holder->resource +
          (holder->is_claim ? ", another claim driver on this node" : " when a device plugin served this node") +
          "; retried automatically, succeeds once that pod has ended");
}

void PluginHoldWatch::scanned() {
  const MutexLock lock(mutex_);
  if (std::exchange(scanned_, true)) return;
  due_ = true;
  changed_.notify_all();
}

void PluginHoldWatch::registered() {
  const SteadyTime now = ports_.now();
  const MutexLock lock(mutex_);
  if (!registered_) registered_at_ = now;
  if (!registered_ || !known_) due_ = true;
  registered_ = true;
  changed_.notify_all();
}

PluginHolders PluginHoldWatch::holders() const {
  const MutexLock lock(mutex_);
  return holders_;
}

Result<PluginHolders> PluginHoldWatch::known_holders() const {
  const SteadyTime now = ports_.now();
  const MutexLock lock(mutex_);
  if (known_ || (registered_ && now >= registered_at_ + patience_)) return holders_;
  return fail(ErrorCode::unavailable, RefusalReason::holders_unknown,
              "the kubelet has not listed yet what containers hold through a device plugin or another driver; retried "
              "automatically");
}

void PluginHoldWatch::wait(const std::stop_token& stop, std::chrono::milliseconds longest,
                           bool PluginHoldWatch::*flag) {
  const std::stop_callback on_stop(stop, [this] {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  });
  const auto until = std::chrono::steady_clock::now() + longest;
  const MutexLock lock(mutex_);
  while (!stop.stop_requested() && (flag == nullptr || !(this->*flag)) &&
         changed_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
  }
}

bool PluginHoldWatch::await_registered(const std::stop_token& stop, std::chrono::milliseconds longest) {
  wait(stop, longest, &PluginHoldWatch::registered_);
  const MutexLock lock(mutex_);
  return registered_;
}

bool PluginHoldWatch::await_first(const std::stop_token& stop) {
  wait(stop, kForEver, &PluginHoldWatch::registered_);
  wait(stop, patience_, &PluginHoldWatch::known_);
  if (stop.stop_requested()) return false;
  const MutexLock lock(mutex_);
  if (!known_)
    spdlog::warn(
        "allocations of a device plugin or another driver unknown (no answer from the kubelet), publishing slices with "
        "the known ones");
  return true;
}

void PluginHoldWatch::run(const std::stop_token& stop) {
  wait(stop, kForEver, &PluginHoldWatch::due_);
  while (!stop.stop_requested()) {
    {
      const MutexLock lock(mutex_);
      if (std::exchange(due_, false)) failures_ = 0;
    }
    wait(stop, turn(), &PluginHoldWatch::due_);
  }
}

std::chrono::milliseconds PluginHoldWatch::turn() {
  const grant::NodeUnitsPtr node = ports_.node();
  if (!node) return kRetry;
  const auto next = ask_and_apply(*node);
  if (!std::exchange(has_asked_, true) && ports_.asked) ports_.asked();
  return next;
}

std::chrono::milliseconds PluginHoldWatch::ask_and_apply(const grant::NodeUnits& node) {
  if (!began_) began_ = ports_.now();
  learn_stored();
  const bool answered = ask();
  apply(node);
  if (!answered) return failures_ <= kMostRetries ? kRetry : kWhileHeld;
  if (!held_.is_whole() || held_.in_doubt()) return kRetry;
  {
    const MutexLock lock(mutex_);
    known_ = true;  // only now: the pool has to have it before it is published
    changed_.notify_all();
  }
  const bool is_new = ports_.now() < *began_ + kNew;
  return is_new || !held_.held().empty() ? kWhileHeld : kOtherwise;
}

void PluginHoldWatch::learn_stored() {
  if (stored_known_ || !ports_.stored) return;
  auto stored = ports_.stored();
  stored_known_ = stored.has_value();
  if (stored) {
    numbering_ = std::move(stored->numbering);
    return held_.add(std::move(stored->allocations));
  }
  const std::string& error = stored.error().message;
  if (is_new(stored_error_, error)) {
    spdlog::warn("device plugin allocations not read from the kubelet's checkpoint: {}", error);
  }
}

bool PluginHoldWatch::ask() {
  const SteadyTime asked_at = ports_.now();
  const auto listed = ports_.listed();
  if (!listed) {
    const std::string& error = listed.error().message;
    const MutexLock lock(mutex_);
    if (registered_ && is_new(last_error_, error)) {  // before that the kubelet may not have begun yet
      spdlog::warn("device plugin allocations not listed by the kubelet: {}", error);
    }
    ++failures_;
    return false;
  }
  last_error_.clear();
  failures_ = 0;
  const auto matters = [this](const model::Allocation& one) {
    if (one.ids.empty()) return false;
    return one.claim.empty() ? model::parse_resource(one.resource_name).has_value()
                             : one.resource_name != ports_.driver;
  };
  held_.set_listed(*listed, matters, asked_at);
  return true;
}

void PluginHoldWatch::apply(const grant::NodeUnits& node) {
  PluginHolders holders = plugin_holders(node, held_.held(), ports_.driver, numbering_);
  const bool held = !holders.empty();
  {
    const MutexLock lock(mutex_);
    if (holders == holders_) return;
    holders_ = std::move(holders);
  }
  if (held) {
    spdlog::info("devices withheld from claims: containers hold them through a device plugin or another driver");
  } else {
    spdlog::info("no device held through a device plugin or another driver any more");
  }
  ports_.changed();
}

}  // namespace neuron::plugin::dra
