#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "agent/allocator/graph.h"

// Large pools. Every candidate start gives two sets, one grown by links and one of its nearest devices; the best of all
// is then improved by exchanging single devices. Cost is at most cubic in the number of devices.
namespace neuron::allocator {
namespace {

constexpr int kRounds = 4;  // of exchanges

using Costs = std::array<int, DeviceGraph::kMaxDevices>;  // hops from each device to the set

class Growth {
 public:
  Growth(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size)
      : graph_(graph), rater_(rater), pool_(pool), must_(must), size_(size) {}

  [[nodiscard]] Mask run() {
    for (Mask starts = must_ != 0 ? must_ : pool_; starts != 0; starts &= starts - 1) {
      const Mask seed = must_ | (starts & (~starts + 1));
      consider(fill(joined(seed)));
      consider(nearest(std::countr_zero(starts)));
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
      Mask next = 0;
      for (Mask rest = fronts[depth]; rest != 0; rest &= rest - 1) next |= graph_.neighbours(std::countr_zero(rest));
      next &= pool_ & ~seen;
      if (const Mask reached = next & set; reached != 0) {
        Mask inner = 0;
        Mask at = reached & (~reached + 1);
        for (std::size_t back = depth; back > 0; --back) {
          const Mask before = graph_.neighbours(std::countr_zero(at)) & fronts[back];
          at = before & (~before + 1);
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
      Mask piece = set & (~set + 1);
      for (Mask front = piece; front != 0;) {
        Mask next = 0;
        for (; front != 0; front &= front - 1) next |= graph_.neighbours(std::countr_zero(front));
        front = next & set & ~piece;
        piece |= front;
      }
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
    for (Mask rest = set; rest != 0; rest &= rest - 1) account(std::countr_zero(rest));
    while (std::popcount(set) < size_) {
      Mask candidates = pool_ & ~set & linked;
      if (candidates == 0) candidates = pool_ & ~set;
      int choice = std::countr_zero(candidates);
      for (Mask rest = candidates; rest != 0; rest &= rest - 1) {
        const int at = std::countr_zero(rest);
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
      for (Mask rest = pool_ & ~set; rest != 0; rest &= rest - 1) {
        if (std::popcount(set) == size_) return set;
        if (graph_.hops(centre, std::countr_zero(rest)) == hops) set |= rest & (~rest + 1);
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
    for (Mask members = before & ~must_; members != 0; members &= members - 1) {
      const Mask out = members & (~members + 1);
      const Mask kept = best_ & ~out;
      if ((best_ & out) == 0) continue;
      const int old_cost = cost(std::countr_zero(out), kept);
      for (Mask rest = pool_ & ~best_; rest != 0; rest &= rest - 1) {
        const int in = std::countr_zero(rest);
        if (wanting() || cost(in, kept) <= old_cost) consider(kept | bit(in));
      }
    }
    return best_ != before;
  }

  [[nodiscard]] int cost(int at, Mask set) const {
    int sum = 0;
    for (; set != 0; set &= set - 1) sum += graph_.hops(at, std::countr_zero(set));
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

Mask grown_subset(const DeviceGraph& graph, const Rater& rater, Mask pool, Mask must, int size) {
  return Growth(graph, rater, pool, must, size).run();
}

}  // namespace neuron::allocator
