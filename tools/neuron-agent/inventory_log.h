#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/core/offer_policy.h"
#include "agent/model/snapshot.h"

namespace neuron::agent {

// Warns of devices and interfaces that the instance type has and the node does not show.
void log_missing(const model::HostScan& host);

// Warns of each thing that cannot be read, but for what is wrong with the host as a whole and is told in the same words
// as the reason of a device's health.
void log_problems(const model::HostScan& host);

// Logs what the machine looks like: at the first snapshot, then only what has changed (model::diff). Of health each
// change of state or reason, with the advice, and the way back. One thread.
class InventoryLog {
 public:
  // `offer`: by which names; nullopt where there are none (DRA mode).
  explicit InventoryLog(std::optional<core::OfferPolicy> offer) : offer_(std::move(offer)) {}
  void operator()(model::SnapshotPtr snapshot);

 private:
  void log_offer(const model::HostScan& host);
  void log_ignored_lines(const model::KernelLog& log);
  void log_election(const model::HostScan& host);

  std::optional<core::OfferPolicy> offer_;
  model::SnapshotPtr last_;  // null before the first
  std::string last_node_;    // how the node was last described
  std::string last_offer_;
  std::string last_election_;       // what was last logged of the UltraServer
  std::uint64_t told_ignored_ = 0;  // lines of the kernel log that were passed over so far
};

}  // namespace neuron::agent
