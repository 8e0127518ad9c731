#pragma once

#include <vector>

#include "test/bench/fragmentation_policies.h"

// One node through one stream of requests.
namespace neuron::bench {

// What happens to a request that does not fit on arrival.
enum class Waiting {
  lost,    // it goes elsewhere
  queued,  // it is tried again, oldest first, whenever a container ends; later ones may overtake it
};

// Sums over the requests that arrived in the measured day; add up over seeds.
struct Measures {
  int offered = 0;
  int fitted = 0;   // started with a valid shape: at once (lost), within kPatience of arrival (queued)
  int refused = 0;  // not started: the policy's rules refuse this size on any node (subset of the rest)
  int missed = 0;   // on arrival there was a valid set of free units, but the policy chose another one
  int room = 0;     // on arrival as many cores were free on this policy's own node, wherever they lay
  double offered_core_minutes = 0;
  double fitted_core_minutes = 0;
  double wait_minutes = 0;  // arrival to start, of all that started; to the end of the day where none came
  double hops = 0;          // sum of mean pairwise hops over `pairs`
  int pairs = 0;            // fitted requests with two devices or more
  int with_nics = 0;        // fitted requests that asked for EFAs
  int aligned_nics = 0;     // of these: all nearest to their devices
  int alignable_nics = 0;   // of these: aligned, or another valid free set would have been

  Measures& operator+=(const Measures& other);
  [[nodiscard]] double fitted_share() const;
  [[nodiscard]] double room_share() const;  // fitted of room; only for Waiting::lost
  [[nodiscard]] double work_share() const;
  [[nodiscard]] double mean_hops() const;
  [[nodiscard]] double aligned_share() const;
  [[nodiscard]] double mean_wait() const;
};

constexpr double kPatience = 15;  // minutes

[[nodiscard]] Measures simulate(const Fabric& fabric, const Policy& policy, const std::vector<Request>& stream,
                                Waiting waiting);

// The bound: cores are one heap, every request fits that the heap is large enough for. No shape, no place: what
// free migration of running containers would reach at best.
[[nodiscard]] Measures simulate_by_count(const Fabric& fabric, const std::vector<Request>& stream, Waiting waiting);

}  // namespace neuron::bench
