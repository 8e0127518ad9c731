#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "agent/allocator/allocator.h"

// Internal to the allocator: sets of devices as bit masks over their positions in NodeTopology::devices.
namespace neuron::allocator {

using Mask = std::uint64_t;

[[nodiscard]] constexpr Mask bit(int position) {
  return Mask{1} << static_cast<unsigned>(position);
}

[[nodiscard]] constexpr Mask lowest(Mask set) {
  return set & (~set + 1);
}

// The positions above one.
[[nodiscard]] constexpr Mask above(int position) {
  return ~Mask{1} << static_cast<unsigned>(position);
}

// The positions in a set, ascending: for (const int at : positions(devices)).
class positions {
 public:
  struct Iterator {
    Mask rest = 0;
    int operator*() const { return std::countr_zero(rest); }
    Iterator& operator++() {
      rest &= rest - 1;
      return *this;
    }
    friend bool operator==(const Iterator& at, std::default_sentinel_t /*end*/) { return at.rest == 0; }
  };
  explicit positions(Mask set) : set_(set) {}
  [[nodiscard]] Iterator begin() const { return {set_}; }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

 private:
  Mask set_;
};

// std::popcount, but inline also where the processor is not known to count bits itself: searches spend most of their
// time in it.
[[nodiscard]] constexpr int count_of(Mask set) {
  set -= set >> 1U & 0x5555555555555555U;
  set = (set & 0x3333333333333333U) + (set >> 2U & 0x3333333333333333U);
  set = (set + (set >> 4U)) & 0x0f0f0f0f0f0f0f0fU;
  return static_cast<int>(set * 0x0101010101010101U >> 56U);
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
  [[nodiscard]] Mask neighbours_of(Mask devices) const;
  [[nodiscard]] Mask piece(Mask from, Mask devices) const;  // `from` and all that links inside `devices` lead to
  [[nodiscard]] int hop_sum(Mask devices) const;            // over all pairs
  [[nodiscard]] bool connected(Mask devices) const { return piece(lowest(devices), devices) == devices; }
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
  void find_places();
  [[nodiscard]] std::vector<Mask> close_pairs() const;

  const NodeTopology& topology_;
  int size_ = 0;
  std::array<Mask, kMaxDevices> adjacent_{};
  std::array<std::array<std::uint8_t, kMaxDevices>, kMaxDevices> hops_{};
  std::array<std::vector<Mask>, kLevels> groups_;
  std::vector<Mask> numa_nodes_;  // the devices of each known one
  std::vector<Mask> switches_;
};

// Score of a set, smaller is better, in the order of docs/allocation.md; equal scores go to the lowest
// indices.
using Score = std::array<int, 11>;
inline constexpr std::size_t kReluctant = 0, kMisses = 1, kHops = 2, kNear = 3;  // the first entries of a Score

// Preferences of one request for a set, apart from how its devices are linked.
struct Preferences {
  std::vector<int> prefer_efas;  // given to the same container already; wins over free_efas
  std::vector<int> free_efas;    // of which the container may ask for `efas`
  int efas = 0;
  Mask reluctant = 0;
};

// Rates sets for one question. Immutable; refers to the graph.
class Rater {
 public:
  // `free`: devices that could be given to others as a whole.
  Rater(const DeviceGraph& graph, Mask free, const Preferences& preferences);

  // `hop_sum` is graph.hop_sum(devices), which a search knows already.
  [[nodiscard]] Score rate(Mask devices, int hop_sum) const;
  [[nodiscard]] int whole_groups_left(Mask devices, int level) const;

  // For searches: the best that a set and all sets that hold it can still reach.
  [[nodiscard]] bool has_preferences() const { return wanted_ > 0 || reluctant_ != 0; }
  [[nodiscard]] Mask reluctant() const { return reluctant_; }
  [[nodiscard]] Mask wanted_near(int position) const { return near_[static_cast<std::size_t>(position)]; }  // of EFAs
  [[nodiscard]] int misses(int near_efas) const { return wanted_ > near_efas ? wanted_ - near_efas : 0; }

 private:
  // Positions whose distance to one wanted EFA is at most 0 (nearest), 1 (same switch), 2 (same NUMA node).
  using Rings = std::array<Mask, 3>;
  [[nodiscard]] int distance_to_efas(Mask devices) const;
  [[nodiscard]] int without_nearest(Mask devices, Mask near) const;
  [[nodiscard]] int chain_fragments(Mask devices) const;

  const DeviceGraph& graph_;
  Mask free_ = 0;
  Mask reluctant_ = 0;
  int wanted_ = 0;                                     // EFAs that should be the nearest of a device
  std::array<Mask, DeviceGraph::kMaxDevices> near_{};  // by device: wanted EFAs that are its nearest
  std::array<Mask, 64> nearest_of_{};                  // by EFA: the devices whose nearest it is
  Mask served_ = 0;                                    // devices that have one of them
  std::vector<Rings> efas_;                            // of prefer_efas
};

// Number of EFAs for so many devices, and of devices for so many EFAs, in proportion of those that are the nearest of
// each other on this node: rounded up, and down to at least 1. 0 where there are none.
[[nodiscard]] int efas_for(const NodeTopology& topology, int devices);
[[nodiscard]] int devices_for(const NodeTopology& topology, int efas);

// 0: the EFA is the device's nearest, 1: behind the same switch or bridge, 2: on the same NUMA node, 3: else.
[[nodiscard]] int locality_class(const NodeTopology& topology, const NodeTopology::Device& device, int efa);

// The best set of `size` devices out of `pool` that contains `must` (a subset of pool): connected if there is one, then
// by score. Exact for pools of up to 16, grown_subset beyond. 1 <= size <= number of devices in pool.
[[nodiscard]] Mask best_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size);

// Usefulness of a set for the runtime, best first.
enum class Fit : std::uint8_t { shape, connected, scattered };  // shape: aligned group, run, or a single device

[[nodiscard]] Fit fit_of(const DeviceGraph& graph, Mask devices);

// best_subset, but sets that are a shape of the fabric come before all others.
[[nodiscard]] Mask pick(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size);

// Score of the best set known so far. Only the score's entries up to the hops count.
struct Limit {
  Fit fit = Fit::scattered;
  Score score{};
};

// pick, or 0 when every set is worse than the limit; those need not be examined.
[[nodiscard]] Mask pick_within(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size,
                               const Limit& limit);

// best_subset among connected sets; 0 when there is none, or none better than `limit`.
[[nodiscard]] Mask connected_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size,
                                    const Score& limit);

// The preferences of a request for `size` whole devices.
[[nodiscard]] Preferences preferences_of(const DeviceGraph& graph, const ChooseRequest& request, int size);

// best_subset for pools beyond the exact limit (docs/allocation.md says how good it is).
[[nodiscard]] Mask grown_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size);

// Whether `a` with score `sa` is better than `b`.
[[nodiscard]] bool better(const Score& sa, Mask a, const Score& sb, Mask b);

// Foreign ids, normalized before every choice: sorted, without repetitions and must_include outside `available`.
struct Question {
  std::vector<int> available;
  std::vector<int> must;  // subset of available, at most `size`
  int size = 0;           // 0 <= size <= available.size()
};
[[nodiscard]] Question normalise(const ChooseRequest& request);

// Fills what `reason` says about the devices touched.
void describe_devices(Reason& reason, const DeviceGraph& graph, const Rater& rater, Mask devices);

// Counts the `efas` that are the nearest interface of one of the devices.
[[nodiscard]] int nearest_of(const DeviceGraph& graph, const std::vector<int>& efas, Mask devices);

// A choice that carries its reason in both forms.
[[nodiscard]] Choice explained(std::vector<int> ids, const Reason& reason);

// The answer where there is nothing to choose: no unit, or all that are available. nullopt: a choice is needed.
[[nodiscard]] std::optional<Choice> obvious(const Question& question);

// `chosen` plus the lowest of `available` not in it, up to `size`; ascending.
[[nodiscard]] std::vector<int> fill_up(std::vector<int> chosen, const std::vector<int>& available, int size);

}  // namespace neuron::allocator
