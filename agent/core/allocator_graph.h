#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/core/allocator.h"

// Internal to the allocator: sets of devices as bit masks over their positions in NodeTopology::devices.
namespace neuron::core::allocation {

using Mask = std::uint64_t;

[[nodiscard]] constexpr Mask bit(int position) {
  return Mask{1} << static_cast<unsigned>(position);
}

// Distances and groups of one node. Immutable after construction. Devices beyond the 64th are left out: position_of
// answers -1 for them, as for unknown indices.
class DeviceGraph {
 public:
  static constexpr int kMaxDevices = 64;
  static constexpr int kUnreachable = 64;  // hops

  explicit DeviceGraph(const NodeTopology& topology);

  [[nodiscard]] const NodeTopology& topology() const { return topology_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const NodeTopology::Device& device(int position) const {
    return topology_.devices[static_cast<std::size_t>(position)];
  }
  [[nodiscard]] int position_of(int index) const;
  [[nodiscard]] Mask mask_of(const std::vector<int>& indices) const;  // unknown indices are left out
  [[nodiscard]] std::vector<int> indices_of(Mask devices) const;      // ascending
  [[nodiscard]] Mask neighbours(int position) const { return adjacent_[static_cast<std::size_t>(position)]; }
  [[nodiscard]] int hops(int a, int b) const { return hops_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }
  [[nodiscard]] int hop_sum(Mask devices) const;     // over all pairs
  [[nodiscard]] bool connected(Mask devices) const;  // by links inside the set
  [[nodiscard]] int numa_nodes(Mask devices) const;  // distinct known ones
  [[nodiscard]] int switches(Mask devices) const;    // distinct known PCI groups
  [[nodiscard]] int index_runs(Mask devices) const;  // stretches of consecutive indices
  [[nodiscard]] bool is_chain() const { return topology_.ring || topology_.line; }

  // Whole aligned groups of 2^level devices (1, 2, 4, ...), by index; level 1 are the pairs that share a switch or an
  // EFA.
  [[nodiscard]] const std::vector<Mask>& groups(int level) const { return groups_[static_cast<std::size_t>(level)]; }
  static constexpr int kLevels = 5;

 private:
  void link_devices();
  void measure_hops();
  void find_groups();
  [[nodiscard]] std::vector<Mask> close_pairs() const;
  [[nodiscard]] int distinct(Mask devices, int NodeTopology::Device::*place) const;

  const NodeTopology& topology_;
  int size_ = 0;
  std::array<Mask, kMaxDevices> adjacent_{};
  std::array<std::array<std::uint8_t, kMaxDevices>, kMaxDevices> hops_{};
  std::array<std::vector<Mask>, kLevels> groups_;
};

// How good a set is, smaller is better, in the order of DESIGN.md §6; equal scores go to the lowest indices.
using Score = std::array<int, 10>;

// Rates sets for one question. Immutable; refers to the graph.
class Rater {
 public:
  // `free`: what could be given to others as whole devices.
  Rater(const DeviceGraph& graph, Mask free, const std::vector<int>& prefer_efas);

  // `hop_sum` is graph.hop_sum(devices), which a search knows already.
  [[nodiscard]] Score rate(Mask devices, int hop_sum) const;
  [[nodiscard]] int whole_groups_left(Mask devices, int level) const;

 private:
  // Positions whose distance to one wanted EFA is at most 0 (nearest), 1 (same switch), 2 (same NUMA node).
  using Rings = std::array<Mask, 3>;
  [[nodiscard]] int distance_to_efas(Mask devices) const;
  [[nodiscard]] int chain_fragments(Mask devices) const;

  const DeviceGraph& graph_;
  Mask free_ = 0;
  std::vector<Rings> efas_;
};

// 0: the EFA is the device's nearest, 1: behind the same switch or bridge, 2: on the same NUMA node, 3: else.
[[nodiscard]] int locality_class(const NodeTopology& topology, const NodeTopology::Device& device, int efa);

// The best set of `size` devices out of `pool` that contains `must` (a subset of pool): connected if there is one, then
// by score. Exact for pools of up to 16, grown_subset beyond. 1 <= size <= number of devices in pool.
[[nodiscard]] Mask best_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size);

// What the runtime makes of a set, best first.
enum class Fit : std::uint8_t { shape, connected, scattered };  // shape: aligned group, run, or a single device

[[nodiscard]] Fit fit_of(const DeviceGraph& graph, Mask devices);

// best_subset, but sets that are a shape of the fabric come before all others.
[[nodiscard]] Mask pick(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size);

// best_subset for pools beyond the exact limit (docs/allocation-rules.md says how good it is).
[[nodiscard]] Mask grown_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size);

// Whether `a` with score `sa` is better than `b`.
[[nodiscard]] bool better(const Score& sa, Mask a, const Score& sb, Mask b);

// What every chooser does first with foreign ids: sorts, removes repetitions, drops must_include outside `available`.
struct Question {
  std::vector<int> available;
  std::vector<int> must;  // subset of available, at most `size`
  int size = 0;           // 0 <= size <= available.size()
};
[[nodiscard]] Question normalise(const ChooseRequest& request);

// Fills what `reason` says about the devices touched.
void describe_devices(Reason& reason, const DeviceGraph& graph, const Rater& rater, Mask devices);

// A choice that carries its reason in both forms.
[[nodiscard]] Choice explained(std::vector<int> ids, const Reason& reason);

// The answer where there is nothing to weigh: none, or all of them.
[[nodiscard]] std::optional<Choice> obvious(const Question& question);

// `chosen` plus the lowest of `available` not in it, up to `size`; ascending.
[[nodiscard]] std::vector<int> fill_up(std::vector<int> chosen, const std::vector<int>& available, int size);

}  // namespace neuron::core::allocation
