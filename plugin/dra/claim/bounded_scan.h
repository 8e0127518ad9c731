#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "agent/grant/node_units.h"

namespace neuron::plugin::dra {

// A scan of the node for a waiting call, on a thread that may hang in a broken driver: one at a time for all callers,
// so that retried calls do not take thread upon thread. Thread-safe.
class BoundedScan {
 public:
  using Scan = std::function<grant::NodeUnitsPtr()>;       // may never return
  using Run = std::function<void(std::function<void()>)>;  // on a thread that may hang
  static constexpr std::chrono::milliseconds kPatience{3000};

  // Objects that `scan` refers to must outlive every job of `run`. An empty `scan` finds nothing.
  BoundedScan(Scan scan, Run run, std::chrono::milliseconds patience = kPatience);

  // Of a scan that begins now, or of the one that is under way; nullptr when that does not end within the patience from
  // its beginning. While one hangs, that is at once. Blocks.
  [[nodiscard]] grant::NodeUnitsPtr operator()();

 private:
  struct State;
  const Scan scan_;
  const Run run_;
  const std::chrono::milliseconds patience_;
  const std::shared_ptr<State> state_;  // shared with a job that hangs
};

}  // namespace neuron::plugin::dra
