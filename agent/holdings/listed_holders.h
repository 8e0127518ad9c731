#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/model/allocation.h"

namespace neuron::holdings {

// Holders that only PodResources List names, kept until their end is certain. A kubelet that has just started lists
// nothing, or static pods alone, until it has read its pods from the API server, and then takes these up one by one
// (docs/reference/kubelet.md#podresources). So one answer without a holder proves nothing: it is forgotten when two
// answers, some time apart, have left it out and none between them showed it. Units of a holder are distinguished by
// resource and id, for claims by driver and device. Plain state, no I/O; not synchronised.
class ListedHolders {
 public:
  // Between the two answers: where both show the agent's own pod, so that the pods are read, and where it is not known
  // which pod that is.
  static constexpr std::chrono::milliseconds kApart{1000};
  static constexpr std::chrono::milliseconds kApartBlind{5000};
  // If no answer shows the own pod for so long after the first that shows any, it has another name than was given.
  static constexpr std::chrono::seconds kOwnPodDue{30};

  // `own_pod`: the name of the pod that the agent runs in, without its namespace. "" = not in a pod, or not known: then
  // every answer counts.
  explicit ListedHolders(std::string own_pod = {}) : own_pod_(std::move(own_pod)) {}

  // Held as another source has it, until List shows otherwise.
  void add(std::vector<model::Allocation> held);

  // The kubelet's answer to a question of `asked_at`, all of it. Keeps entries for which `is_kept` is true, but not
  // admin access, which holds nothing.
  using IsKept = std::function<bool(const model::Allocation&)>;
  void set_listed(const std::vector<model::Allocation>& answer, const IsKept& is_kept, SteadyTime asked_at);

  // Holders in the newest answer, and those that it left out but may still exist. The listed first, in their order.
  [[nodiscard]] const std::vector<model::Allocation>& held() const { return held_; }
  [[nodiscard]] bool is_whole() const { return whole_; }  // the newest answer shows the own pod; false before the first
  [[nodiscard]] bool in_doubt() const;                    // something of held() was not in the newest answer: ask again

 private:
  std::string own_pod_;
  bool own_pod_seen_ = false;
  bool whole_ = false;
  std::optional<SteadyTime> first_pods_at_;  // of the first answer with any pod
  std::vector<model::Allocation> held_;
  std::vector<std::optional<SteadyTime>> missing_since_;  // as held_: the first whole answer without it
  std::size_t listed_ = 0;                                // how many of held_ are in the newest answer
};

}  // namespace neuron::holdings
