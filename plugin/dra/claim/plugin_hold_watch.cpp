#include "plugin/dra/claim/plugin_hold_watch.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace neuron::plugin::dra {

namespace {
constexpr std::chrono::hours kForEver{24 * 365};
}  // namespace

void PluginHoldWatch::registered() {
  const MutexLock lock(mutex_);
  registered_ = true;
  changed_.notify_all();
}

PluginHolders PluginHoldWatch::holders() const {
  const MutexLock lock(mutex_);
  return holders_;
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
  wait(stop, kForEver, &PluginHoldWatch::registered_);
  while (!stop.stop_requested()) wait(stop, turn());
}

std::chrono::milliseconds PluginHoldWatch::turn() {
  const grant::NodeUnitsPtr node = ports_.node();
  if (!node) return kRetry;
  if (!began_) began_ = ports_.now();
  learn_stored();
  const bool answered = ask();
  apply(*node);
  if (!answered) return failures_ <= kMostRetries ? kRetry : kWhileHeld;
  if (!held_.is_whole() || held_.in_doubt()) return kRetry;
  set_known();  // only now: the pool has to have it before it is published
  const bool is_new = ports_.now() < *began_ + kNew;
  return is_new || !held_.held().empty() ? kWhileHeld : kOtherwise;
}

void PluginHoldWatch::learn_stored() {
  if (stored_known_ || !ports_.stored) return;
  auto stored = ports_.stored();
  stored_known_ = stored.has_value();
  if (stored) return held_.add(*std::move(stored));
  if (stored_error_ != stored.error().message) {
    spdlog::warn("device plugin allocations not read from the kubelet's checkpoint: {}", stored.error().message);
  }
  stored_error_ = stored.error().message;
}

bool PluginHoldWatch::ask() {
  const SteadyTime asked_at = ports_.now();
  const auto listed = ports_.listed();
  if (!listed) {
    if (last_error_ != listed.error().message) {
      spdlog::warn("device plugin allocations not listed by the kubelet: {}", listed.error().message);
    }
    last_error_ = listed.error().message;
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
  PluginHolders holders = plugin_holders(node, held_.held(), ports_.driver);
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

void PluginHoldWatch::set_known() {
  const MutexLock lock(mutex_);
  known_ = true;
  changed_.notify_all();
}

}  // namespace neuron::plugin::dra
