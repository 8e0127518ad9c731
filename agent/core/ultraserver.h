#pragma once

#include <string>
#include <vector>

#include "agent/model/host_scan.h"

// State of the election in an UltraServer, in which its servers find each other (docs/reference/driver.md#elections).
// Pure.
namespace neuron::core {

struct Election {
  enum class Phase {
    none,     // no UltraServer, or its files cannot be read
    blocked,  // it cannot begin: devices have not been reset
    running,  // no device is known to prevent it; the class files say busy
    alone,    // it has ended, and no other server was found
    linked,   // it has ended, and this node knows its place
  };
  Phase phase = Phase::none;
  std::vector<int> awaited;  // blocked: devices that are missing, in reset, given up or not answering, ascending
  std::string sentence;      // "" for none
  std::string action;        // remediation; "" for none
};

// The state of the election in a scan, assessed or not. The table of the instance type shows which devices are missing;
// the file `reset` shows whether one has been reset, where it may be read (by root).
[[nodiscard]] Election election_of(const model::HostScan& scan);

}  // namespace neuron::core
