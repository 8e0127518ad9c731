#include "agent/health/heartbeat.h"

#include <algorithm>

namespace neuron::health {
namespace {

using model::NeuronDevice;

constexpr std::chrono::seconds kWindow{60};
constexpr int kTimes = 10;  // of the longest beat
constexpr int kScans = 10;  // a program that slept saw no time go by

bool stands_still(const HeartbeatMemory& memory, const HeartbeatMemory::Beat& beat, SteadyTime now) {
  return beat.scans >= kScans && now - beat.since >= kWindow && now - beat.since >= kTimes * memory.longest;
}

// While a device is being reset its firmware is not expected to say anything.
bool is_watched(const NeuronDevice& device) {
  return device.presence == model::Presence::present && device.signals.heartbeat && device.signals.reset_state != 0;
}

void take_down(const NeuronDevice& device, HeartbeatMemory& memory, SteadyTime now) {
  const std::uint64_t value = *device.signals.heartbeat;
  const auto [at, is_new] = memory.devices.try_emplace(device.index);
  HeartbeatMemory::Beat& beat = at->second;
  if (!is_new && beat.value == value) {
    ++beat.scans;
    beat.last = now;
    return;
  }
  if (!is_new && !stands_still(memory, beat, now)) memory.longest = std::max(memory.longest, beat.last - beat.since);
  beat = {value, now, now, 0, !is_new};
}

}  // namespace

std::map<int, Heartbeat> watch_heartbeats(const model::HostScan& scan, HeartbeatMemory& memory, SteadyTime now) {
  std::map<int, Heartbeat> states;
  for (const NeuronDevice& device : scan.devices) {
    if (!is_watched(device)) {
      memory.devices.erase(device.index);
      continue;
    }
    take_down(device, memory, now);
    states[device.index] = Heartbeat::fine;
  }
  const bool any_moves = std::any_of(memory.devices.begin(), memory.devices.end(), [&](const auto& entry) {
    return entry.second.moved && !stands_still(memory, entry.second, now);
  });
  const bool all_at_zero = std::all_of(memory.devices.begin(), memory.devices.end(), [&](const auto& entry) {
    return entry.second.value == 0 && !entry.second.moved && stands_still(memory, entry.second, now);
  });
  for (auto& [index, state] : states) {
    const HeartbeatMemory::Beat& beat = memory.devices[index];
    if (!stands_still(memory, beat, now)) continue;
    if (any_moves) {
      state = Heartbeat::alone;
    } else if (beat.moved) {
      state = Heartbeat::with_all;
    } else if (all_at_zero) {
      state = Heartbeat::never;
    }
  }
  return states;
}

}  // namespace neuron::health
