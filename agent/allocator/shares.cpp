#include "agent/allocator/shares.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace neuron::allocator {
namespace {

constexpr int kMaxCores = 64;

CoreMask low_bits(int count) {
  return count >= kMaxCores ? ~CoreMask{0} : (CoreMask{1} << static_cast<unsigned>(count)) - 1;
}

CoreMask bits(int first, int count) {
  return low_bits(count) << static_cast<unsigned>(first);
}

// Where the cores of a device have to lie, so that those of the container are one range.
enum class End { tail, head, all, any };

bool has_end(CoreMask cores, End end, int per_device) {
  const int count = std::popcount(cores);
  switch (end) {
    case End::tail:
      return cores == bits(per_device - count, count);
    case End::head:
      return cores == low_bits(count);
    case End::all:
      return cores == low_bits(per_device);
    case End::any:
      break;
  }
  return cores == 0 || cores == bits(std::countr_zero(cores), count);
}

int runs_of(CoreMask cores) {
  return std::popcount(cores & ~(cores << 1U));
}

// The number of free aligned blocks of 2, 4, 8 … cores.
int blocks_of(CoreMask free, int per_device) {
  int count = 0;
  for (int size = 2; size <= per_device; size *= 2) {
    for (int first = 0; first + size <= per_device; first += size) {
      count += (free & bits(first, size)) == bits(first, size) ? 1 : 0;
    }
  }
  return count;
}

// Smaller is better: runs of what the container has on the device, runs of what stays free, aligned blocks that stay
// and that it has, and the lowest cores.
std::tuple<int, int, int, int, CoreMask> rank(const ShareWish& wish, CoreMask cores, int per_device) {
  const CoreMask left = wish.free & ~cores;
  return {runs_of(cores | wish.beside), runs_of(left), -blocks_of(left, per_device), -blocks_of(cores, per_device),
          cores};
}

bool is_granular(CoreMask cores, const ShareWish& wish, int per_device) {
  for (int first = 0; wish.granule > 1 && first < per_device; first += wish.granule) {
    const CoreMask block = cores & bits(first, wish.granule);
    if (block != 0 && block != bits(first, wish.granule)) return false;
  }
  return true;
}

// The best set of that many free cores with that end; nullopt: there is none. A run where one is free, so that a device
// with many cores is not searched through all subsets.
std::optional<CoreMask> best(const ShareWish& wish, End end, int per_device) {
  std::optional<CoreMask> found;
  const auto offer = [&](CoreMask cores) {
    if ((cores & ~wish.free) != 0 || !is_granular(cores, wish, per_device)) return;
    if (end != End::any && !has_end(cores | wish.beside, end, per_device)) return;
    if (!found || rank(wish, cores, per_device) < rank(wish, *found, per_device)) found = cores;
  };
  for (int first = 0; first + wish.cores <= per_device; ++first) offer(bits(first, wish.cores));
  constexpr int kSearched = 16;
  if (per_device <= kSearched) {
    for (CoreMask cores = 0; cores <= low_bits(per_device); ++cores) {
      if (std::popcount(cores) == wish.cores) offer(cores);
    }
  } else if (!found && end == End::any) {
    CoreMask cores = 0;
    for (CoreMask rest = wish.free; std::popcount(cores) < wish.cores; rest &= rest - 1) cores |= rest & -rest;
    offer(cores);
  }
  return found;
}

}  // namespace

std::vector<std::optional<CoreMask>> choose_shares(int cores_per_device, const std::vector<ShareWish>& wishes,
                                                   const std::vector<int>& others) {
  std::vector<int> devices = others;
  for (const ShareWish& wish : wishes) devices.push_back(wish.device);
  const auto ends = std::minmax_element(devices.begin(), devices.end());  // clang 14 captures no structured binding
  const auto end_of = [&](const ShareWish& wish) {
    if (*ends.first == *ends.second) return End::any;
    return wish.device == *ends.first ? End::tail : wish.device == *ends.second ? End::head : End::all;
  };
  std::vector<std::optional<CoreMask>> range, each;
  for (const ShareWish& wish : wishes) {
    const bool fits = wish.cores >= 1 && wish.cores <= std::popcount(wish.free & low_bits(cores_per_device));
    range.push_back(fits ? best(wish, end_of(wish), cores_per_device) : std::nullopt);
    each.push_back(fits ? best(wish, End::any, cores_per_device) : std::nullopt);
  }
  const bool is_range = std::all_of(range.begin(), range.end(), [](const auto& one) { return one.has_value(); });
  return is_range ? range : each;
}

}  // namespace neuron::allocator
