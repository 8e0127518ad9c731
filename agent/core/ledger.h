#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"

// Who holds which silicon, across resources that are the same silicon. Plain state, no I/O, no clock of its own; not
// synchronised: its owner (plugin/allocation_desk) locks.
namespace neuron::core {

// The resources that are made of cores. `neurondevice` is an alias of `neuron` with the same device ids.
enum class SiliconResource { neuroncore, neuron, neurondevice };

[[nodiscard]] std::string_view resource_name(SiliconResource resource);  // "aws.amazon.com/neuroncore", …

// One container admission of the kubelet, as far as a plugin can tell one from the next: the kubelet rewrites its
// checkpoint once per container, after all of the container's resources. 0 = cannot tell, equal to nothing.
using AdmissionMark = std::uint64_t;

struct Holding {
  SiliconResource resource{};
  std::vector<int> cores;    // global logical core ids, ascending
  std::vector<int> devices;  // device indices touched, ascending
  std::string holder;        // "namespace/pod/container"; "" until PodResources has named it
  AdmissionMark mark = 0;
  SteadyTime since{};
};

// A holding that stands in the way of a request.
struct Conflict {
  int core = 0;  // the lowest core in dispute
  Holding with;
  // "core 4 is held by default/train/worker through aws.amazon.com/neuron"
  [[nodiscard]] std::string describe() const;
};

class Ledger {
 public:
  // An answer the agent gave. A container that held one of the same cores through the same resource is over, since the
  // kubelet gives nothing twice: all its holdings go, through whatever resource.
  void record(Holding holding);

  // What PodResources (or the checkpoint) shows, asked at `asked_at`: holdings recorded before that and not shown are
  // over; shown ones are confirmed with their holder's name; unseen ones from before our time are added.
  void reconcile(const std::vector<Holding>& shown, SteadyTime asked_at);

  // The first holding of another resource that overlaps `cores`, leaving out those of the admission `mark` and those of
  // containers that giving `cores` through `resource` shows to be over (see record).
  [[nodiscard]] std::optional<Conflict> conflict(SiliconResource resource, const std::vector<int>& cores,
                                                 AdmissionMark mark) const;

  // The answer already given to the container being admitted under `mark` through another resource; nullptr when none,
  // or when `resource` itself was answered in it already (then this must be another container).
  [[nodiscard]] const Holding* same_admission(SiliconResource resource, AdmissionMark mark) const;

  // The newest answer of any silicon resource under `mark`, for choosing NICs beside it; nullptr when none.
  [[nodiscard]] const Holding* newest_of_admission(AdmissionMark mark) const;

  // Cores that `resource` must not offer: held through another resource and not by the same container through this one.
  // Ascending, unique.
  [[nodiscard]] std::vector<int> blocked_cores(SiliconResource resource) const;

  [[nodiscard]] const std::vector<Holding>& holdings() const { return holdings_; }

 private:
  // Positions in holdings_ of every holding of a container that held some of `cores` through `resource`.
  [[nodiscard]] std::vector<bool> over_when_given(SiliconResource resource, const std::vector<int>& cores) const;

  std::vector<Holding> holdings_;  // oldest first
};

}  // namespace neuron::core
