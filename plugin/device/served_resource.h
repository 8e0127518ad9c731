#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/base/clock.h"
#include "plugin/device/kubelet_port.h"

namespace neuron::plugin {

// State of one resource in DeviceManager: its server, the progress of its registration, the list last published.
// Passive data, one thread.
struct ServedResource {
  enum class Phase { idle, registering, registered };

  model::Resource resource{};
  std::unique_ptr<ResourceServer> server;  // nullptr: not served (nothing to offer, or no kubelet yet)
  Phase phase = Phase::idle;
  std::optional<SteadyTime> retry_at;  // when to register next
  std::chrono::milliseconds backoff{0};
  SteadyTime registered_at{};
  std::optional<SteadyTime> check_at;  // by when a kubelet that registered it has to have opened ListAndWatch
  std::uint64_t kubelet = 0;           // identity of the kubelet.sock it last registered with
  UnitListPtr last_list;               // as last published, at published_at
  SteadyTime published_at{};
  std::string last_error;  // as last logged, so that a repeated one is not

  // Publishes last_list, new or unchanged, to all watchers. Only while there is a server.
  void publish(SteadyTime now) {
    published_at = now;
    server->publish(last_list);
  }

  // The next wait: 20 ms, doubling, at most 5 s. An endpoint that lived for a while starts over.
  void schedule_retry(SteadyTime now) {
    constexpr std::chrono::milliseconds kFirst{20};
    constexpr std::chrono::milliseconds kMost{5000};
    constexpr std::chrono::seconds kStable{10};
    if (phase == Phase::registered && now - registered_at > kStable) backoff = std::chrono::milliseconds{0};
    backoff = backoff.count() == 0 ? kFirst : std::min(backoff * 2, kMost);
    phase = Phase::idle;
    retry_at = now + backoff;
  }
};

}  // namespace neuron::plugin
