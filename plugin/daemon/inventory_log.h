#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/offer_policy.h"
#include "agent/model/snapshot.h"

// The log of the inventory: hardware of the node, its health, and how it is offered.
namespace neuron::plugin {

// Warns of devices and interfaces that the instance type has and the node does not show.
void log_missing(const model::HostScan& host);

// Warns of each value that cannot be read, except for problems of the host that repeat the sentence of a device's
// health.
void log_problems(const model::HostScan& host);

struct OfferLine {
  bool warning = false;
  std::string text;
};

// Remarks on `offer` for this node, whose devices may be fewer than those of its instance type: the cost of offering
// both names, the devices that a split gives to each name, indices that no device of the type has, devices that are
// offered under no name, a node of which nothing is offered. Empty where there is nothing to remark, and where the node
// has neither a device nor an interface. Pure.
[[nodiscard]] std::vector<OfferLine> offer_lines(const core::OfferPolicy& offer, const model::HostScan& host);

// Logs the inventory of the first snapshot, then changes (model::diff); of health each change of state or reason, with
// the advice, also back to healthy. One thread.
class InventoryLog {
 public:
  // `offer`: nullopt in DRA mode, where no resources are offered.
  explicit InventoryLog(std::optional<core::OfferPolicy> offer) : offer_(std::move(offer)) {}
  void log(const model::SnapshotPtr& snapshot);

 private:
  void log_offer(const model::HostScan& host);
  void log_ignored_lines(const model::KernelLog& log);
  void log_election(const model::HostScan& host);

  std::optional<core::OfferPolicy> offer_;
  model::SnapshotPtr last_;  // null before the first
  // As logged last:
  std::string last_node_;
  std::string last_offer_;
  std::string last_election_;
  std::uint64_t last_ignored_ = 0;  // lines of the kernel log
};

}  // namespace neuron::plugin
