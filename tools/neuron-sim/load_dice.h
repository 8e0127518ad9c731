#pragma once

#include <cstdint>

namespace neuron::sim {

// Numbers by chance that are the same for the same seed on every machine (the standard distributions are not).
// Steele, Lea and Flood's SplitMix64. Not thread-safe.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  [[nodiscard]] std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }
  [[nodiscard]] double between(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11U) * 0x1p-53);
  }
  // 0 to count - 1; count > 0.
  [[nodiscard]] int below(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }

 private:
  std::uint64_t state_;
};

}  // namespace neuron::sim
