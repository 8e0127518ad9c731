#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "agent/allocator/graph.h"

namespace neuron::allocator {
namespace {

constexpr int kExactLimit = 16;

enum class Shape { connected, any };

// Branch and bound over the subsets of a pool, by the entries of the score up to the hop sum; sets that are equal there
// are compared by their full score.
class Search {
 public:
  Search(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size, Shape shape)
      : graph_(graph), rater_(rater), must_(must), size_(size), shape_(shape) {
    for (const int at : positions(pool & ~must)) order_[count_++] = at;
    int degree = 0;
    for (const int at : positions(pool)) degree = std::max(degree, std::popcount(graph.neighbours(at) & pool));
    // Least hops among r devices: each has at most `degree` others one hop away, all further ones cost two.
    for (int r = 0; r <= size_; ++r) {
      const int pairs = r * (r - 1) / 2;
      least_among_[static_cast<std::size_t>(r)] = 2 * pairs - std::min(pairs, r * std::min(degree, r - 1) / 2);
    }
    for (std::size_t i = count_; i > 0; --i) {
      const Mask near = rater_.wanted_near(order_[i - 1]);
      near_from_[i - 1] = near_from_[i] | near;
      clean_from_[i - 1] = clean_from_[i] + ((rater_.reluctant() & bit(order_[i - 1])) == 0 ? 1 : 0);
      most_near_ = std::max(most_near_, std::popcount(near));
    }
    for (const int at : positions(must)) near_must_ |= rater_.wanted_near(at);
    const int left = size_ - std::popcount(must_);
    least_reluctant_ = std::popcount(must_ & rater_.reluctant()) + std::max(0, left - clean_from_[0]);
    const int more = std::min(left * most_near_, std::popcount(near_from_[0] & ~near_must_));
    least_misses_ = rater_.misses(std::popcount(near_must_) + more);
  }

  // Before run(): sets that are worse up to the hops are not wanted.
  void limit_to(const Score& score) {
    limited_ = true;
    best_score_ = score;
    set_preferences_met();
  }

  [[nodiscard]] std::optional<Mask> run() {
    if (!limited_) seed();
    Costs costs{};
    for (std::size_t i = 0; i < count_; ++i) {
      int cost = 0;
      for (const int at : positions(must_)) cost += graph_.hops(order_[i], at);
      costs[i] = static_cast<std::int16_t>(cost);
      for (std::size_t k = 0; k < count_; ++k) {
        between_[i][k] = static_cast<std::int16_t>(graph_.hops(order_[i], order_[k]));
      }
    }
    descend(0, size_ - std::popcount(must_), graph_.hop_sum(must_), {must_, near_must_}, costs);
    return best_;
  }

 private:
  using Costs = std::array<std::int16_t, kExactLimit>;  // hops from each candidate to the set so far
  struct Part {
    Mask set = 0;
    Mask near = 0;  // wanted EFAs that are nearest to it
  };

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

  // Adds the cheapest candidate to `set`, one that brings a wanted EFA before others; false when none may be added.
  bool grow(Mask& set) const {
    constexpr int kUnwanted = 10'000;
    int least = -1;
    int choice = -1;
    Mask near = 0;
    for (const int at : positions(rater_.has_preferences() ? set : 0)) near |= rater_.wanted_near(at);
    const bool more = rater_.misses(std::popcount(near)) > 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Mask one = bit(order_[i]);
      if ((set & one) != 0) continue;
      if (shape_ == Shape::connected && (graph_.neighbours(order_[i]) & set) == 0) continue;
      int cost = (rater_.reluctant() & one) != 0 ? 2 * kUnwanted : 0;
      if (more && (rater_.wanted_near(order_[i]) & ~near) == 0) cost += kUnwanted;
      for (const int at : positions(set)) cost += graph_.hops(order_[i], at);
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
    if (!best_ && limited_ &&
        std::lexicographical_compare(best_score_.begin(), best_score_.begin() + kNear, score.begin(),
                                     score.begin() + kNear)) {
      return;
    }
    best_ = set;
    best_score_ = score;
    set_preferences_met();
  }

  void set_preferences_met() {
    preferences_met_ = best_score_[kReluctant] == least_reluctant_ && best_score_[kMisses] == least_misses_;
  }

  // Whether no set that holds `part`, `left` more of the candidates from `from` on, and has at least `hops`, can be as
  // good as the best so far.
  [[nodiscard]] bool hopeless(const Part& part, std::size_t from, int left, int hops) const {
    if (!best_ && !limited_) return false;
    if (preferences_met_) {
      if (hops > best_score_[kHops]) return true;
      if (!rater_.has_preferences()) return false;
    }
    const int reluctant = count_of(part.set & rater_.reluctant()) + std::max(0, left - clean_from_[from]);
    if (reluctant != best_score_[kReluctant]) return reluctant > best_score_[kReluctant];
    const int more = std::min(left * most_near_, count_of(near_from_[from] & ~part.near));
    const int misses = rater_.misses(count_of(part.near) + more);
    if (misses != best_score_[kMisses]) return misses > best_score_[kMisses];
    return hops > best_score_[kHops];
  }

  void descend(std::size_t start, int left, int sum, const Part& part, const Costs& costs) {
    if (left == 0) return consider(part.set, sum);
    for (std::size_t i = start; i + static_cast<std::size_t>(left) <= count_; ++i) {
      const int next_sum = sum + costs[i];
      const int floor = next_sum + least_among_[static_cast<std::size_t>(left - 1)];
      const Part next_part{part.set | bit(order_[i]), part.near | rater_.wanted_near(order_[i])};
      if (hopeless(next_part, i + 1, left - 1, floor + (left - 1) * (size_ - left + 1))) continue;
      Costs next;
      for (std::size_t k = 0; k < kExactLimit; ++k) next[k] = static_cast<std::int16_t>(costs[k] + between_[i][k]);
      int least = left > 1 ? next[i + 1] : 0;
      for (std::size_t k = i + 2; k < count_; ++k) least = std::min<int>(least, next[k]);
      if (hopeless(next_part, i + 1, left - 1, floor + (left - 1) * least)) continue;
      descend(i + 1, left - 1, next_sum, next_part, next);
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
  std::array<Mask, kExactLimit + 1> near_from_{};  // wanted EFAs nearest to the candidates from one on
  std::array<int, kExactLimit + 1> clean_from_{};  // of these candidates, those that are not reluctant
  int most_near_ = 0;                              // wanted EFAs nearest to one candidate, at most
  Mask near_must_ = 0;
  int least_reluctant_ = 0;  // no set has less of it
  int least_misses_ = 0;
  bool preferences_met_ = false;  // the best so far has as little of both as can be
  bool limited_ = false;
  std::optional<Mask> best_;
  Score best_score_{};  // of best_, before there is one the limit
};

bool has_component_of(const DeviceGraph& graph, Mask pool, int size) {
  for (Mask left = pool; left != 0;) {
    const Mask piece = graph.piece(lowest(left), pool);
    if (std::popcount(piece) >= size) return true;
    left &= ~piece;
  }
  return false;
}

// Large pools. Every candidate start gives two sets, one grown by links and one of its nearest devices; the best of all
// is then improved by exchanging single devices. Cost is at most cubic in the number of devices.

constexpr int kRounds = 4;  // of exchanges

using Costs = std::array<int, DeviceGraph::kMaxDevices>;  // hops from each device to the set

class Growth {
 public:
  Growth(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size)
      : graph_(graph), rater_(rater), pool_(pool), must_(must), size_(size) {}

  [[nodiscard]] Mask run() {
    for (const int start : positions(must_ != 0 ? must_ : pool_)) {
      consider(fill(joined(must_ | bit(start))));
      consider(nearest(start));
    }
    for (int round = 0; round < kRounds && exchange(); ++round) {
    }
    return best_;
  }

 private:
  void consider(Mask set) {
    const Fit fit = fit_of(graph_, set);
    if (best_ != 0 && fit > best_fit_) return;
    const Score score = rater_.rate(set, graph_.hop_sum(set));
    if (best_ != 0 && fit == best_fit_ && !better(score, set, best_score_, best_)) return;
    best_ = set;
    best_fit_ = fit;
    best_score_ = score;
  }

  // The shortest path inside the pool from `from` to another member of `set`, its inner devices only; nullopt: none.
  [[nodiscard]] std::optional<Mask> path(Mask from, Mask set) const {
    std::array<Mask, DeviceGraph::kMaxDevices + 1> fronts{};
    fronts[0] = from;
    Mask seen = from;
    for (std::size_t depth = 0; fronts[depth] != 0; ++depth) {
      const Mask next = graph_.neighbours_of(fronts[depth]) & pool_ & ~seen;
      if (const Mask reached = next & set; reached != 0) {
        Mask inner = 0;
        Mask at = lowest(reached);
        for (std::size_t back = depth; back > 0; --back) {
          at = lowest(graph_.neighbours(std::countr_zero(at)) & fronts[back]);
          inner |= at;
        }
        return inner;
      }
      seen |= next;
      fronts[depth + 1] = next;
    }
    return std::nullopt;
  }

  // `set` with the devices that join its pieces, as far as they fit.
  [[nodiscard]] Mask joined(Mask set) const {
    while (true) {
      const Mask piece = graph_.piece(lowest(set), set);
      if (piece == set) return set;
      const auto inner = path(piece, set & ~piece);
      if (!inner || std::popcount(set | *inner) > size_) return set;
      set |= *inner;
    }
  }

  // Adds the cheapest linked device, or the cheapest at all when none is linked, until the size is reached.
  [[nodiscard]] Mask fill(Mask set) const {
    Costs costs{};
    Mask linked = 0;
    const auto account = [&](int at) {
      linked |= graph_.neighbours(at);
      for (int i = 0; i < graph_.size(); ++i) costs[static_cast<std::size_t>(i)] += graph_.hops(at, i);
    };
    for (const int at : positions(set)) account(at);
    while (std::popcount(set) < size_) {
      Mask candidates = pool_ & ~set & linked;
      if (candidates == 0) candidates = pool_ & ~set;
      int choice = std::countr_zero(candidates);
      for (const int at : positions(candidates)) {
        if (costs[static_cast<std::size_t>(at)] < costs[static_cast<std::size_t>(choice)]) choice = at;
      }
      set |= bit(choice);
      account(choice);
    }
    return set;
  }

  // The devices that must be in, and those nearest to `centre`.
  [[nodiscard]] Mask nearest(int centre) const {
    Mask set = must_ | bit(centre);
    for (int hops = 1; hops <= DeviceGraph::kUnreachable; ++hops) {
      for (const int at : positions(pool_ & ~set)) {
        if (std::popcount(set) == size_) return set;
        if (graph_.hops(centre, at) == hops) set |= bit(at);
      }
    }
    return set;
  }

  // The best so far lacks something that comes before hops.
  [[nodiscard]] bool wanting() const {
    return best_fit_ == Fit::scattered || best_score_[kReluctant] > 0 || best_score_[kMisses] > 0;
  }

  // One round: every device of the set against every one outside it; whether that made the set better.
  bool exchange() {
    const Mask before = best_;
    for (const int out : positions(before & ~must_)) {
      const Mask kept = best_ & ~bit(out);
      if (kept == best_) continue;
      const int old_cost = cost(out, kept);
      for (const int in : positions(pool_ & ~best_)) {
        if (wanting() || cost(in, kept) <= old_cost) consider(kept | bit(in));
      }
    }
    return best_ != before;
  }

  [[nodiscard]] int cost(int at, Mask set) const {
    int sum = 0;
    for (const int other : positions(set)) sum += graph_.hops(at, other);
    return sum;
  }

  const DeviceGraph& graph_;
  const Rater& rater_;
  Mask pool_;
  Mask must_;
  int size_;
  Mask best_ = 0;
  Fit best_fit_ = Fit::scattered;
  Score best_score_{};
};

}  // namespace

Mask best_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size) {
  if (std::popcount(pool) == size) return pool;
  if (std::popcount(pool) > kExactLimit) return grown_subset(graph, rater, pool, must, size);
  if (has_component_of(graph, pool, size)) {
    if (const auto found = Search(graph, rater, pool, must, size, Shape::connected).run()) return *found;
  }
  return Search(graph, rater, pool, must, size, Shape::any).run().value_or(must);
}

Mask connected_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size,
                      const Score& limit) {
  if (std::popcount(pool) == size) return graph.connected(pool) ? pool : 0;
  if (std::popcount(pool) > kExactLimit) return grown_subset(graph, rater, pool, must, size);
  if (!has_component_of(graph, pool, size)) return 0;
  Search search(graph, rater, pool, must, size, Shape::connected);
  search.limit_to(limit);
  return search.run().value_or(0);
}

Mask grown_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size) {
  return Growth(graph, rater, pool, must, size).run();
}

}  // namespace neuron::allocator
