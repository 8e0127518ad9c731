#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/allocator/allocator.h"

// What arrives at the simulated node in a day, and when it leaves. Pure: the same seed gives the same stream on every
// machine (no distribution of the standard library is used, theirs differ).
namespace neuron::bench {

enum class Unit { device, core };

// One line of a mix: so many of the arrivals ask for this.
struct Demand {
  Unit unit = Unit::device;
  int size = 0;
  double weight = 0;        // share of arrivals; those of a mix add up to 1
  double mean_minutes = 0;  // of the exponential lifetime
};

struct Mix {
  std::string name;
  std::vector<Demand> demands;
};

struct Request {
  int id = 0;  // position in the stream
  Unit unit = Unit::device;
  int size = 0;
  int efas = 0;             // in proportion: size * EFAs of the node / devices of the node; 0 where that is no integer
  bool efas_first = false;  // the kubelet asks for its resources in random order
  double arrival = 0;       // minutes
  double lifetime = 0;      // minutes
};

// Minutes before the day starts in which the node fills up; nothing is measured in them.
constexpr double kWarmUp = 6 * 60;
constexpr double kDay = 24 * 60;

// The three documented mixes (training, inference, mixed) for a node.
[[nodiscard]] std::vector<Mix> mixes_of(const allocator::NodeTopology& topology);

// Poisson arrivals over warm-up and day, ascending. `load`: core-minutes asked for over core-minutes there are.
[[nodiscard]] std::vector<Request> make_stream(const allocator::NodeTopology& topology, const Mix& mix, double load,
                                               std::uint64_t seed);

}  // namespace neuron::bench
