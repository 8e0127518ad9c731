#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "agent/core/allocator_graph.h"

namespace neuron::core::allocation {
namespace {

constexpr int kExactLimit = 16;

enum class Shape { connected, any };

// Branch and bound over the subsets of a pool, by smallest hop sum; sets of equal sum are compared by their full score.
class Search {
 public:
  Search(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size, Shape shape)
      : graph_(graph), rater_(rater), must_(must), size_(size), shape_(shape) {
    for (Mask rest = pool & ~must; rest != 0; rest &= rest - 1) order_[count_++] = std::countr_zero(rest);
    int degree = 0;
    for (Mask rest = pool; rest != 0; rest &= rest - 1) {
      degree = std::max(degree, std::popcount(graph.neighbours(std::countr_zero(rest)) & pool));
    }
    // Least hops among r devices: each has at most `degree` others one hop away, all further ones cost two.
    for (int r = 0; r <= size_; ++r) {
      const int pairs = r * (r - 1) / 2;
      least_among_[static_cast<std::size_t>(r)] = 2 * pairs - std::min(pairs, r * std::min(degree, r - 1) / 2);
    }
  }

  [[nodiscard]] std::optional<Mask> run() {
    seed();
    Costs costs{};
    for (std::size_t i = 0; i < count_; ++i) {
      int cost = 0;
      for (Mask rest = must_; rest != 0; rest &= rest - 1) cost += graph_.hops(order_[i], std::countr_zero(rest));
      costs[i] = static_cast<std::int16_t>(cost);
      for (std::size_t k = 0; k < count_; ++k) {
        between_[i][k] = static_cast<std::int16_t>(graph_.hops(order_[i], order_[k]));
      }
    }
    descend(0, size_ - std::popcount(must_), graph_.hop_sum(must_), must_, costs);
    return best_;
  }

 private:
  using Costs = std::array<std::int16_t, kExactLimit>;  // hops from each candidate to the set so far

  // A greedy answer from a few starts first, so that most branches are cut early.
  void seed() {
    for (std::size_t first = 0; first < count_ || first == 0; first += 4) {
      Mask set = must_ != 0 || count_ == 0 ? must_ : bit(order_[first]);
      while (std::popcount(set) < size_ && grow(set)) {
      }
      if (std::popcount(set) == size_) consider(set, graph_.hop_sum(set));
      if (must_ != 0) return;
    }
  }

  // Adds the cheapest candidate to `set`; false when none may be added.
  bool grow(Mask& set) const {
    int least = -1;
    int choice = -1;
    for (std::size_t i = 0; i < count_; ++i) {
      if ((set & bit(order_[i])) != 0) continue;
      if (shape_ == Shape::connected && (graph_.neighbours(order_[i]) & set) == 0) continue;
      int cost = 0;
      for (Mask rest = set; rest != 0; rest &= rest - 1) cost += graph_.hops(order_[i], std::countr_zero(rest));
      if (choice < 0 || cost < least) {
        least = cost;
        choice = order_[i];
      }
    }
    if (choice < 0) return false;
    set |= bit(choice);
    return true;
  }

  void consider(Mask set, int sum) {
    if (shape_ == Shape::connected && !graph_.connected(set)) return;
    const Score score = rater_.rate(set, sum);
    if (best_ && !better(score, set, best_score_, *best_)) return;
    best_ = set;
    best_score_ = score;
  }

  void descend(std::size_t start, int left, int sum, Mask set, const Costs& costs) {
    if (left == 0) return consider(set, sum);
    for (std::size_t i = start; i + static_cast<std::size_t>(left) <= count_; ++i) {
      const int next_sum = sum + costs[i];
      const int floor = next_sum + least_among_[static_cast<std::size_t>(left - 1)];
      if (best_ && floor + (left - 1) * (size_ - left + 1) > best_score_[0]) continue;
      Costs next;
      for (std::size_t k = 0; k < kExactLimit; ++k) next[k] = static_cast<std::int16_t>(costs[k] + between_[i][k]);
      int least = left > 1 ? next[i + 1] : 0;
      for (std::size_t k = i + 2; k < count_; ++k) least = std::min<int>(least, next[k]);
      if (best_ && floor + (left - 1) * least > best_score_[0]) continue;
      descend(i + 1, left - 1, next_sum, set | bit(order_[i]), next);
    }
  }

  const DeviceGraph& graph_;
  const Rater& rater_;
  Mask must_;
  int size_;
  Shape shape_;
  std::array<int, kExactLimit> order_{};  // positions that may be added, ascending
  std::size_t count_ = 0;
  std::array<Costs, kExactLimit> between_{};  // hops between candidates
  std::array<int, kExactLimit + 1> least_among_{};
  std::optional<Mask> best_;
  Score best_score_{};
};

bool has_component_of(const DeviceGraph& graph, Mask pool, int size) {
  for (Mask left = pool; left != 0;) {
    Mask seen = left & (~left + 1);
    for (Mask front = seen; front != 0;) {
      Mask next = 0;
      for (; front != 0; front &= front - 1) next |= graph.neighbours(std::countr_zero(front));
      front = next & pool & ~seen;
      seen |= front;
    }
    if (std::popcount(seen) >= size) return true;
    left &= ~seen;
  }
  return false;
}

}  // namespace

Mask best_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size) {
  if (std::popcount(pool) == size) return pool;
  if (std::popcount(pool) > kExactLimit) return grown_subset(graph, rater, pool, must, size);
  if (has_component_of(graph, pool, size)) {
    if (const auto found = Search(graph, rater, pool, must, size, Shape::connected).run()) return *found;
  }
  return Search(graph, rater, pool, must, size, Shape::any).run().value_or(must);
}

}  // namespace neuron::core::allocation
