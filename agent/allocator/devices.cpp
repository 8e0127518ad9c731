#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "agent/allocator/graph.h"
#include "agent/base/sorted.h"

namespace neuron::allocator {

Question normalise(const ChooseRequest& request) {
  Question question;
  question.available = sorted_unique(request.available);
  question.size = std::clamp(request.size, 0, static_cast<int>(question.available.size()));
  for (const int id : sorted_unique(request.must_include)) {
    if (static_cast<int>(question.must.size()) == question.size) break;
    if (is_in(id, question.available)) question.must.push_back(id);
  }
  return question;
}

std::vector<int> fill_up(std::vector<int> chosen, const std::vector<int>& available, int size) {
  std::sort(chosen.begin(), chosen.end());
  const std::vector<int> first = chosen;
  for (const int id : available) {
    if (static_cast<int>(chosen.size()) >= size) break;
    if (!is_in(id, first)) chosen.push_back(id);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

namespace {

// Aligned groups of exactly this size, whether free or not.
std::vector<Mask> shapes_of_torus(const DeviceGraph& graph, int size) {
  if (size == 2 || !std::has_single_bit(static_cast<unsigned>(size)) || size > 16) return {};
  return graph.groups(std::countr_zero(static_cast<unsigned>(size)));
}

// The run of linked devices of this size that begins at a position; a ring's may pass its end. 0 when there is none.
Mask run_from(const DeviceGraph& graph, int start, int size) {
  Mask run = bit(start);
  int at = start;
  while (std::popcount(run) < size) {
    const int next = at + 1 < graph.size() ? at + 1 : 0;
    if ((next == 0 && !graph.topology().ring) || (graph.neighbours(at) & bit(next) & ~run) == 0) return 0;
    run |= bit(next);
    at = next;
  }
  return run;
}

std::vector<Mask> shapes_of_chain(const DeviceGraph& graph, int size) {
  std::vector<Mask> runs;
  for (int start = 0; start < graph.size(); ++start) {
    if (const Mask run = run_from(graph, start, size); run != 0) runs.push_back(run);
  }
  return runs;
}

std::vector<Mask> shapes_of(const DeviceGraph& graph, int size) {
  if (graph.topology().groups_of_torus || size == 1) return shapes_of_torus(graph, size);
  return graph.is_chain() ? shapes_of_chain(graph, size) : std::vector<Mask>{};
}

}  // namespace

Fit fit_of(const DeviceGraph& graph, Mask devices) {
  const int size = std::popcount(devices);
  if (size == 1) return Fit::shape;
  if (!graph.connected(devices)) return Fit::scattered;
  if (graph.topology().groups_of_torus) {
    if (size == 2 || size > 16 || !std::has_single_bit(static_cast<unsigned>(size))) return Fit::connected;
    const auto& groups = graph.groups(std::countr_zero(static_cast<unsigned>(size)));
    return std::find(groups.begin(), groups.end(), devices) != groups.end() ? Fit::shape : Fit::connected;
  }
  for (const int start : positions(graph.is_chain() ? devices : 0)) {
    if (run_from(graph, start, size) == devices) return Fit::shape;
  }
  return Fit::connected;
}

namespace {

// The best shape; 0 when there is none.
Mask best_shape(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size) {
  std::optional<Mask> best;
  Score best_score{};
  for (const Mask shape : shapes_of(graph, size)) {
    if ((shape & ~pool) != 0 || (must & ~shape) != 0) continue;
    const Score score = rater.rate(shape, graph.hop_sum(shape));
    if (best && !better(score, shape, best_score, *best)) continue;
    best = shape;
    best_score = score;
  }
  return best.value_or(0);
}

}  // namespace

Mask pick(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size) {
  const Mask shape = best_shape(graph, rater, pool, must, size);
  return shape != 0 ? shape : best_subset(graph, rater, pool, must, size);
}

Mask pick_within(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size, const Limit& limit) {
  if (const Mask shape = best_shape(graph, rater, pool, must, size); shape != 0) return shape;
  if (limit.fit == Fit::shape) return 0;
  if (limit.fit == Fit::scattered) return best_subset(graph, rater, pool, must, size);
  return connected_subset(graph, rater, pool, must, size, limit.score);
}

int nearest_of(const DeviceGraph& graph, const std::vector<int>& efas, Mask devices) {
  return static_cast<int>(std::count_if(efas.begin(), efas.end(), [&](int efa) {
    for (const int at : positions(devices)) {
      const auto& near = graph.device(at).near_efas;
      if (std::find(near.begin(), near.end(), efa) != near.end()) return true;
    }
    return false;
  }));
}

Preferences preferences_of(const DeviceGraph& graph, const ChooseRequest& request, int size) {
  return {request.prefer_efas, request.free_efas, efas_for(graph.topology(), size),
          graph.mask_of(request.reluctant_devices)};
}

namespace {

Reason::Kind kind_of(const DeviceGraph& graph, Mask devices) {
  switch (fit_of(graph, devices)) {
    case Fit::shape:
      break;
    case Fit::connected:
      return Reason::Kind::connected;
    case Fit::scattered:
      return Reason::Kind::scattered;
  }
  return graph.is_chain() ? Reason::Kind::run : Reason::Kind::aligned_group;
}

void describe(Reason& reason, const DeviceGraph& graph, const Rater& rater, const ChooseRequest& request,
              Mask devices) {
  describe_devices(reason, graph, rater, devices);
  if (!request.prefer_efas.empty()) reason.nearest = nearest_of(graph, request.prefer_efas, devices);
}

}  // namespace

Choice choose_devices(const NodeTopology& topology, const ChooseRequest& request) {
  const Question question = normalise(request);
  if (auto choice = obvious(question)) return *std::move(choice);
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
  Reason reason;
  reason.kind = Reason::Kind::unrated;
  reason.units = question.size;
  if (wanted > 0) {
    const Rater rater(graph, clean, preferences_of(graph, request, wanted));
    const Mask picked = pick(graph, rater, pool, must, wanted);
    for (const int index : graph.indices_of(picked)) ids.push_back(index);
    if (static_cast<int>(ids.size()) == question.size && wanted == question.size) reason.kind = kind_of(graph, picked);
    describe(reason, graph, rater, request, picked);
  }
  return explained(fill_up(std::move(ids), question.available, question.size), reason);
}

Reason explain_devices(const NodeTopology& topology, const ChooseRequest& request, const std::vector<int>& chosen) {
  Reason reason;
  reason.units = static_cast<int>(chosen.size());
  if (chosen.empty()) return reason;
  const DeviceGraph graph(topology);
  const Mask devices = graph.mask_of(chosen);
  const Mask clean = graph.mask_of(request.available) & ~graph.mask_of(request.avoid_devices);
  reason.kind = std::popcount(devices) == reason.units ? kind_of(graph, devices) : Reason::Kind::unrated;
  describe(reason, graph, Rater(graph, clean, {}), request, devices);
  return reason;
}

}  // namespace neuron::allocator
