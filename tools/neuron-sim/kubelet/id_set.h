#pragma once

#include <algorithm>
#include <iterator>

#include "tools/neuron-sim/kubelet/pod.h"

// Set algebra over device ids.
namespace neuron::sim {

[[nodiscard]] inline IdSet minus(const IdSet& a, const IdSet& b) {
  IdSet out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

[[nodiscard]] inline IdSet both(const IdSet& a, const IdSet& b) {
  IdSet out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

[[nodiscard]] inline IdSet either(IdSet a, const IdSet& b) {
  a.insert(b.begin(), b.end());
  return a;
}

}  // namespace neuron::sim
