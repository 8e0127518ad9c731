#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/model/resource.h"

namespace neuron::holdings {

// One container admission of the kubelet, as far as a plugin can distinguish one from the next: the kubelet rewrites
// its checkpoint once per container, after all of the container's resources. 0 = unknown, equal to nothing.
using CheckpointVersion = std::uint64_t;

// Longer than any admission takes, from its first call to the checkpoint, by far.
inline constexpr std::chrono::seconds kMaxAdmission{5};

// A container's share of the node in the node's own terms: beside the kubelet's record (model::Allocation), its units
// on this node, the hardware below them, and since when. Holdings by this agent's answers are known before the kubelet
// lists them. Passive data.
struct Holding {
  model::Resource resource{};
  std::vector<int> units;    // of the resource itself: core ids, device indices or EFA positions, ascending
  std::vector<int> cores;    // global logical core ids, ascending; empty for efa
  std::vector<int> devices;  // device indices touched, ascending; empty for efa
  std::string holder;        // the holder, as model::holder_of has it; "" until the kubelet lists it
  CheckpointVersion version = 0;
  SteadyTime since{};
  std::string shown_as{};          // model::holder_name, for messages; "": as `holder`
  std::string claim{};             // name of the claim that it is held by; "" = through the device plugin
  bool doubtful = false;           // Ledger::confirm: the last checkpoint lacked it, and may have been older
  bool left_out = false;           // Ledger::reconcile: the same
  bool given_during_list = false;  // while the agent's PodResources List was open: the kubelet may count it as free
  bool available = false;          // given_during_list, and the kubelet has passed a unit of it as available since
  std::string claim_namespace{};   // of `claim`; "": not known
};

}  // namespace neuron::holdings
