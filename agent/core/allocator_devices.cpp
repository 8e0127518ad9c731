#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "agent/core/allocator_graph.h"

namespace neuron::core {
namespace allocation {

Question normalise(const ChooseRequest& request) {
  Question question;
  const auto tidy = [](std::vector<int> ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  };
  question.available = tidy(request.available);
  question.size = std::clamp(request.size, 0, static_cast<int>(question.available.size()));
  for (const int id : tidy(request.must_include)) {
    if (static_cast<int>(question.must.size()) == question.size) break;
    if (std::binary_search(question.available.begin(), question.available.end(), id)) question.must.push_back(id);
  }
  return question;
}

std::vector<int> fill_up(std::vector<int> chosen, const std::vector<int>& available, int size) {
  std::sort(chosen.begin(), chosen.end());
  const std::vector<int> first = chosen;
  for (const int id : available) {
    if (static_cast<int>(chosen.size()) >= size) break;
    if (!std::binary_search(first.begin(), first.end(), id)) chosen.push_back(id);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace allocation

namespace {

using allocation::bit;
using allocation::DeviceGraph;
using allocation::Mask;
using allocation::Rater;
using allocation::Score;

enum class Kind { group, run, set };

struct Picked {
  Mask devices = 0;
  Kind kind = Kind::set;
};

// Aligned groups of exactly this size, whether free or not.
std::vector<Mask> shapes_of_torus(const DeviceGraph& graph, int size) {
  if (size == 2 || !std::has_single_bit(static_cast<unsigned>(size)) || size > 16) return {};
  return graph.groups(std::countr_zero(static_cast<unsigned>(size)));
}

// Runs of linked devices of exactly this size; a ring's may pass its end.
std::vector<Mask> shapes_of_chain(const DeviceGraph& graph, int size) {
  std::vector<Mask> runs;
  for (int start = 0; start < graph.size(); ++start) {
    Mask run = bit(start);
    int at = start;
    while (std::popcount(run) < size) {
      const int next = at + 1 < graph.size() ? at + 1 : 0;
      if ((next == 0 && !graph.topology().ring) || (graph.neighbours(at) & bit(next) & ~run) == 0) break;
      run |= bit(next);
      at = next;
    }
    if (std::popcount(run) == size) runs.push_back(run);
  }
  return runs;
}

std::optional<Mask> best_shape(const DeviceGraph& graph, const Rater& rater, const std::vector<Mask>& shapes, Mask pool,
                               Mask must) {
  std::optional<Mask> best;
  Score best_score{};
  for (const Mask shape : shapes) {
    if ((shape & ~pool) != 0 || (must & ~shape) != 0) continue;
    const Score score = rater.rate(shape, graph.hop_sum(shape));
    if (best && !allocation::better(score, shape, best_score, *best)) continue;
    best = shape;
    best_score = score;
  }
  return best;
}

Picked pick(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size) {
  if (graph.topology().groups_of_torus || size == 1) {
    if (const auto group = best_shape(graph, rater, shapes_of_torus(graph, size), pool, must)) {
      return {*group, Kind::group};
    }
  }
  if (graph.is_chain()) {
    if (const auto run = best_shape(graph, rater, shapes_of_chain(graph, size), pool, must)) return {*run, Kind::run};
  }
  return {allocation::best_subset(graph, rater, pool, must, size), Kind::set};
}

std::string counted(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string explain(const DeviceGraph& graph, const Rater& rater, Picked picked) {
  const int size = std::popcount(picked.devices);
  std::string why = picked.kind == Kind::group ? "aligned group of " : picked.kind == Kind::run ? "run of " : "set of ";
  why += std::to_string(size);
  if (picked.kind == Kind::set && size > 1 && !graph.connected(picked.devices)) why += ", not connected";
  if (size > 1 && !graph.topology().switched) why += ", " + counted(graph.hop_sum(picked.devices), "hop");
  if (const int nodes = graph.numa_nodes(picked.devices); nodes > 0) why += ", " + counted(nodes, "NUMA node");
  if (graph.topology().groups_of_torus) {
    why += ", leaves " + counted(rater.whole_groups_left(picked.devices, 2), "group") + " of 4 whole";
  }
  return why;
}

}  // namespace

Choice choose_devices(const NodeTopology& topology, const ChooseRequest& request) {
  const allocation::Question question = allocation::normalise(request);
  if (question.size == 0) return {{}, "nothing to choose"};
  if (question.size == static_cast<int>(question.available.size()))
    return {question.available, "all that is available"};
  const DeviceGraph graph(topology);
  Mask must = graph.mask_of(question.must);
  const Mask available = graph.mask_of(question.available);
  const Mask clean = available & ~graph.mask_of(request.avoid_devices);
  // Ids outside the topology cannot be rated: those that must be in take their places, others come last.
  std::vector<int> unknown_must;
  for (const int id : question.must) {
    if (graph.position_of(id) < 0) unknown_must.push_back(id);
  }
  const int wanted = std::min(question.size - static_cast<int>(unknown_must.size()), std::popcount(available));
  Mask pool = clean | must;
  if (std::popcount(pool) < wanted) {
    must = pool;
    pool = available;
  }
  std::vector<int> ids = std::move(unknown_must);
  std::string why = "ids that the topology does not know";
  if (wanted > 0) {
    const Rater rater(graph, clean, request.prefer_efas);
    const Picked picked = pick(graph, rater, pool, must, wanted);
    for (const int index : graph.indices_of(picked.devices)) ids.push_back(index);
    why = explain(graph, rater, picked);
  }
  return {allocation::fill_up(std::move(ids), question.available, question.size), std::move(why)};
}

}  // namespace neuron::core
