#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neuron::sim {

enum class TargetKind { host, device, core, efa };

// A file that `neuron-sim set` knows by a short name. Passive.
struct FaultKey {
  std::string name;  // "sram_ecc_uncorrected"
  TargetKind kind = TargetKind::host;
  std::string path;     // below the target's folder, "" for what is made of more than a value; a leading "@" stands for
                        // infiniband/<name> of an EFA function
  std::string meaning;  // one phrase, for --list
  std::string before;   // put before the value in the file
  std::string after = "\n";
  bool may_create = false;  // the file may be absent on a healthy host
};

// Sorted by kind, then as the reference lists them. Static lifetime.
[[nodiscard]] const std::vector<FaultKey>& fault_keys();

// Also accepts the short forms "heartbeat" and "rx_dropped". nullptr when unknown.
[[nodiscard]] const FaultKey* find_fault_key(TargetKind kind, std::string_view name);

// The text of `neuron-sim set --list`.
[[nodiscard]] std::string list_faults();

}  // namespace neuron::sim
