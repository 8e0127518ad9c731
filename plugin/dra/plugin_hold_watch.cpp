#include "plugin/dra/plugin_hold_watch.h"

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
    spdlog::warn("the kubelet does not say what containers hold through a device plugin: slices are published");
  return true;
}

void PluginHoldWatch::run(const std::stop_token& stop) {
  wait(stop, kForEver, &PluginHoldWatch::registered_);
  while (!stop.stop_requested()) wait(stop, turn());
}

std::chrono::milliseconds PluginHoldWatch::turn() {
  const grant::NodeUnitsPtr node = ports_.node();
  if (!node) return kRetry;
  const auto listed = ports_.listed();
  if (!listed) {
    if (last_error_ != listed.error().message) {
      spdlog::warn("what containers hold through a device plugin is not known: {}", listed.error().message);
    }
    last_error_ = listed.error().message;
    if (++failures_ < kMostFailures) return kRetry;
    tell_known();
    return kOtherwise;
  }
  last_error_.clear();
  failures_ = 0;
  PluginHolders holders = plugin_holders(*node, *listed, ports_.driver);
  const bool held = !holders.empty();
  bool is_new = false;
  {
    const MutexLock lock(mutex_);
    is_new = holders != holders_;
    holders_ = std::move(holders);
  }
  if (is_new) {
    spdlog::info(
        "{}",
        held ? "containers hold devices through a device plugin or another driver: they are kept from claims until "
               "these end"
             : "nothing is held through a device plugin or another driver any more");
    ports_.changed();
  }
  tell_known();  // only now: the pool has to have it before it is published
  return held ? kWhileHeld : kOtherwise;
}

void PluginHoldWatch::tell_known() {
  const MutexLock lock(mutex_);
  known_ = true;
  changed_.notify_all();
}

}  // namespace neuron::plugin::dra
