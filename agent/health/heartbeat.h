#pragma once

#include <cstdint>
#include <map>

#include "agent/base/clock.h"
#include "agent/model/host_scan.h"

// stats/hardware/health_status/healthcheck_heartbeat: a count that the device's firmware advances; its period is not
// published (docs/reference/driver.md#health-status). Pure: time is an argument.
namespace neuron::health {

// Heartbeats seen so far. Passive data.
struct HeartbeatMemory {
  struct Beat {
    std::uint64_t value = 0;
    SteadyTime since{};  // when it was first seen at this value
    SteadyTime last{};   // when it was last seen at it
    int scans = 0;       // that saw it there since
    bool moved = false;  // it was seen to change
  };
  std::map<int, Beat> devices;                    // by device index
  std::chrono::steady_clock::duration longest{};  // that a beat was seen to last
};

enum class Heartbeat {
  fine,      // it moves, was not looked at for long enough, or nothing is known of it
  alone,     // it stands still while another device's goes on
  with_all,  // it moved once and stands still, and so do all others
  never,     // it stands still at 0 and never moved, and so do all others: nothing measures it
};

// The state of each device that has a heartbeat, by index. It stands still when it did not change for a minute, for ten
// times as long as it ever took on this machine, and in ten scans. One that was never seen to move counts only while
// another one moves, or while all read 0: a captured or simulated machine has values that never change.
[[nodiscard]] std::map<int, Heartbeat> watch_heartbeats(const model::HostScan& scan, HeartbeatMemory& memory,
                                                        SteadyTime now);

}  // namespace neuron::health
