#pragma once

#include <cstdint>
#include <optional>
#include <vector>

// Chooses the cores of a claim's shares: the scheduler fixes only the device of each share and its number of cores
// (docs/dra-partitions.md#shares). Pure: no clock, no I/O, deterministic.
namespace neuron::allocator {

using CoreMask = std::uint64_t;  // bit = position of a logical core in its device

// One device of which a claim has cores, through one share or several. Passive data.
struct ShareWish {
  int device = 0;
  int cores = 0;        // wanted, at least one
  CoreMask free = 0;    // that may be chosen: healthy and not held
  CoreMask beside = 0;  // cores of this device that the same containers have already
  int granule = 1;      // chosen in aligned blocks of so many, where the claim's LNC joins them
};

// The cores for each wish, in the order of the wishes, each device at most once; nullopt: too few are free.
// `others`: further devices of the same containers, whole as a rule.
// Where it is possible the cores of all wishes, with those beside and of `others`, are one range as the runtime in a
// container counts (CoreChooser in cores.cpp): the last of the first device, the first of the last, all of those
// between. Else each device by itself: one run where there is one, and of those the one that leaves the fewest runs
// cut: the smallest that fits, then at its end that keeps aligned blocks whole.
[[nodiscard]] std::vector<std::optional<CoreMask>> choose_shares(int cores_per_device,
                                                                 const std::vector<ShareWish>& wishes,
                                                                 const std::vector<int>& others);

}  // namespace neuron::allocator
