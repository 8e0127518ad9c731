#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "agent/core/allocator_graph.h"

// The runtime numbers the cores of the devices it sees from 0 and accepts one range only. So the visible cores must be
// the tail of the first device, all of those between, and the head of the last (in ascending device index).
namespace neuron::core {
namespace {

using allocation::bit;
using allocation::DeviceGraph;
using allocation::Mask;
using allocation::Rater;
using allocation::Score;

using Cores = std::uint64_t;  // bit = core position in its device

constexpr int kMaxCores = 64;

Cores low_bits(int count) {
  return count >= kMaxCores ? ~Cores{0} : (Cores{1} << static_cast<unsigned>(count)) - 1;
}
Cores range(int first, int count) {
  return low_bits(count) << static_cast<unsigned>(first);
}

// One possible answer: the devices in it, and the cores of its two ends (equal for one device).
struct Candidate {
  Mask devices = 0;
  Cores first = 0;
  Cores last = 0;
};

// Preference of a candidate, smaller is better: what the silicon's other half demands, then DESIGN.md §6.
struct Rank {
  int off_hint = 0;  // devices outside prefer_devices
  int hops = 0;
  int efa_distance = 0;
  int left_over = 0;  // free cores that stay on its devices: least where others have begun already
  Score devices{};
  int fragments = 0;  // minus the sum of squares of free core runs that stay
  friend auto operator<=>(const Rank&, const Rank&) = default;
};

class CoreChooser {
 public:
  CoreChooser(const DeviceGraph& graph, const ChooseRequest& request, const allocation::Question& question)
      : graph_(graph),
        per_device_(graph.topology().cores_per_device),
        prefer_(graph.mask_of(request.prefer_devices)),
        request_(request),
        avoid_(graph.mask_of(request.avoid_devices)) {
    for (const int id : question.available) add(free_, id);
    for (const int id : question.must) add(must_, id);
    for (int i = 0; i < graph.size(); ++i) {
      if (must_[index(i)] != 0) must_devices_ |= bit(i);
    }
  }

  [[nodiscard]] Mask avoided() const { return avoid_ & ~must_devices_; }
  [[nodiscard]] Mask with_free_cores() const {
    Mask devices = 0;
    for (int i = 0; i < graph_.size(); ++i) {
      if (free_[index(i)] != 0) devices |= bit(i);
    }
    return devices;
  }
  [[nodiscard]] int free_cores(Mask devices) const {
    int count = 0;
    for (Mask rest = devices; rest != 0; rest &= rest - 1) count += std::popcount(free_[index(std::countr_zero(rest))]);
    return count;
  }

  // The best range of `size` cores on `allowed` devices, with every core that must be in; nullopt when there is none.
  [[nodiscard]] std::optional<Candidate> choose(int size, Mask allowed) {
    best_.reset();
    allowed_ = allowed;
    whole_ = 0;
    for (int i = 0; i < graph_.size(); ++i) {
      if ((allowed & bit(i)) != 0 && free_[index(i)] == low_bits(per_device_)) whole_ |= bit(i);
    }
    rater_.emplace(graph_, whole_, request_.prefer_efas);
    if (size <= per_device_) within_one_device(size);
    if (!best_ && size >= per_device_) whole_devices_and_rest(size);
    if (!best_) two_partial_ends(size);
    return best_;
  }

  [[nodiscard]] std::vector<int> ids_of(const Candidate& candidate) const {
    std::vector<int> ids;
    for (Mask rest = candidate.devices; rest != 0; rest &= rest - 1) {
      const int at = std::countr_zero(rest);
      for (Cores cores = cores_of(candidate, at); cores != 0; cores &= cores - 1) {
        ids.push_back(graph_.device(at).index * per_device_ + std::countr_zero(cores));
      }
    }
    return ids;
  }

  // Without a range: the must-haves, then the devices with most free cores, so that few devices are touched.
  [[nodiscard]] std::vector<int> scattered(std::vector<int> must, int size, Mask allowed) const {
    std::vector<int> order;
    for (Mask rest = allowed; rest != 0; rest &= rest - 1) order.push_back(std::countr_zero(rest));
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const auto key = [&](int i) { return std::pair((must_devices_ & bit(i)) == 0, -std::popcount(free_[index(i)])); };
      return key(a) < key(b);
    });
    std::vector<int> ids = std::move(must);
    for (const int at : order) {
      for (Cores rest = free_[index(at)] & ~must_[index(at)]; rest != 0; rest &= rest - 1) {
        if (static_cast<int>(ids.size()) >= size) return ids;
        ids.push_back(graph_.device(at).index * per_device_ + std::countr_zero(rest));
      }
    }
    return ids;
  }

 private:
  using PerDevice = std::array<Cores, DeviceGraph::kMaxDevices>;

  static std::size_t index(int position) { return static_cast<std::size_t>(position); }

  void add(PerDevice& cores, int id) const {
    const int at = id < 0 ? -1 : graph_.position_of(id / per_device_);
    if (at >= 0) cores[index(at)] |= range(id % per_device_, 1);
  }

  [[nodiscard]] Cores cores_of(const Candidate& candidate, int at) const {
    if (at == std::countr_zero(candidate.devices)) return candidate.first;
    if (at == static_cast<int>(std::bit_width(candidate.devices)) - 1) return candidate.last;
    return low_bits(per_device_);
  }

  void offer(const Candidate& candidate) {
    if ((must_devices_ & ~candidate.devices) != 0) return;
    Rank rank;
    for (Mask rest = candidate.devices; rest != 0; rest &= rest - 1) {
      const int at = std::countr_zero(rest);
      const Cores cores = cores_of(candidate, at);
      if ((cores & ~free_[index(at)]) != 0 || (must_[index(at)] & ~cores) != 0) return;
      const Cores stay = free_[index(at)] & ~cores;
      rank.left_over += std::popcount(stay);
      for (Cores left = stay; left != 0;) {
        const int run = std::countr_one(left >> static_cast<unsigned>(std::countr_zero(left)));
        rank.fragments -= run * run;
        left &= ~range(std::countr_zero(left), run);
      }
    }
    rank.devices = rater_->rate(candidate.devices, graph_.hop_sum(candidate.devices));
    rank.hops = rank.devices[0];
    rank.efa_distance = rank.devices[1];
    rank.off_hint = prefer_ != 0 ? std::popcount(candidate.devices & ~prefer_) : 0;
    if (best_ && !(rank < best_rank_)) return;
    best_ = candidate;
    best_rank_ = rank;
  }

  void within_one_device(int size) {
    for (Mask rest = allowed_; rest != 0; rest &= rest - 1) {
      const int at = std::countr_zero(rest);
      for (int first = 0; first + size <= per_device_; ++first) {
        const Cores cores = range(first, size);
        if ((cores & ~free_[index(at)]) == 0) offer({bit(at), cores, cores});
      }
    }
  }

  // `count` devices out of `pool` that hold `must`, 0 when there are not that many.
  [[nodiscard]] Mask devices_from(Mask pool, Mask must, int count) const {
    if (std::popcount(pool) < count || (must & ~pool) != 0 || std::popcount(must) > count) return 0;
    if (std::popcount((pool & prefer_) | must) >= count) pool = (pool & prefer_) | must;
    ChooseRequest request;
    request.available = graph_.indices_of(pool);
    request.must_include = graph_.indices_of(must);
    request.size = count;
    request.prefer_efas = request_.prefer_efas;
    return graph_.mask_of(choose_devices(graph_.topology(), request).ids);
  }

  void whole_devices_and_rest(int size) {
    const int whole = size / per_device_;
    const int rest = size % per_device_;
    const Cores all = low_bits(per_device_);
    if (rest == 0) {
      if (const Mask set = devices_from(whole_, must_devices_, whole); set != 0) offer({set, all, all});
      return;
    }
    const Cores head = low_bits(rest);
    const Cores tail = range(per_device_ - rest, rest);
    for (Mask partial = allowed_ & ~whole_; partial != 0; partial &= partial - 1) {
      const Mask end = partial & (~partial + 1);
      const Cores free = free_[index(std::countr_zero(partial))];
      const Mask others_must = must_devices_ & ~end;
      if ((tail & ~free) == 0) {
        if (const Mask set = devices_from((whole_ & ~(end - 1)) | end, others_must | end, whole + 1); set != 0) {
          offer({set, tail, all});
        }
      }
      if ((head & ~free) == 0) {
        if (const Mask set = devices_from((whole_ & (end - 1)) | end, others_must | end, whole + 1); set != 0) {
          offer({set, all, head});
        }
      }
    }
    if (const Mask set = devices_from(whole_, must_devices_, whole + 1); set != 0) {
      offer({set, all, head});
      offer({set, tail, all});
    }
  }

  // The `count` devices of `pool` that are closest to both ends.
  [[nodiscard]] Mask closest(Mask pool, int a, int b, int count) const {
    std::vector<std::pair<int, int>> order;
    for (Mask rest = pool; rest != 0; rest &= rest - 1) {
      const int at = std::countr_zero(rest);
      const int must_first = (must_devices_ & bit(at)) != 0 ? 0 : 2 * DeviceGraph::kUnreachable;
      order.emplace_back(must_first + graph_.hops(at, a) + graph_.hops(at, b), at);
    }
    std::sort(order.begin(), order.end());
    Mask set = 0;
    for (int i = 0; i < count; ++i) set |= bit(order[index(i)].second);
    return set;
  }

  // Nothing simpler is left: the tail of one device, whole ones between, the head of another.
  void two_partial_ends(int size) {
    for (Mask firsts = allowed_; firsts != 0; firsts &= firsts - 1) {
      const int a = std::countr_zero(firsts);
      const int unused = kMaxCores - per_device_;
      const int longest_tail = std::countl_one(free_[index(a)] << static_cast<unsigned>(unused));
      for (Mask lasts = firsts & (firsts - 1); lasts != 0; lasts &= lasts - 1) {
        const int b = std::countr_zero(lasts);
        const int longest_head = std::countr_one(free_[index(b)]);
        const Mask between = whole_ & (bit(b) - 1) & ~(bit(a + 1) - 1);
        for (int tail = 1; tail <= std::min(longest_tail, size - 1); ++tail) {
          const int head = (size - tail - 1) % per_device_ + 1;
          const int whole = (size - tail - head) / per_device_;
          if (head > longest_head || whole > std::popcount(between)) continue;
          const Mask middle = closest(between, a, b, whole);
          offer({bit(a) | bit(b) | middle, range(per_device_ - tail, tail), low_bits(head)});
        }
      }
    }
  }

  const DeviceGraph& graph_;
  int per_device_;
  Mask prefer_;
  const ChooseRequest& request_;
  Mask avoid_;
  PerDevice free_{};
  PerDevice must_{};
  Mask must_devices_ = 0;
  Mask allowed_ = 0;
  Mask whole_ = 0;
  std::optional<Rater> rater_;
  std::optional<Candidate> best_;
  Rank best_rank_{};
};

std::string explain(const DeviceGraph& graph, const Candidate& candidate) {
  const int devices = std::popcount(candidate.devices);
  if (devices == 1) return "one range on device " + std::to_string(graph.indices_of(candidate.devices).front());
  return "one range over " + std::to_string(devices) + " devices, " + std::to_string(graph.hop_sum(candidate.devices)) +
         " hops";
}

}  // namespace

Choice choose_cores(const NodeTopology& topology, const ChooseRequest& request) {
  const allocation::Question question = allocation::normalise(request);
  if (question.size == 0) return {{}, "nothing to choose"};
  if (question.size == static_cast<int>(question.available.size()))
    return {question.available, "all that is available"};
  const int per_device = topology.cores_per_device;
  if (per_device < 1 || per_device > kMaxCores) {
    return {allocation::fill_up(question.must, question.available, question.size), "core numbering is not known"};
  }
  const DeviceGraph graph(topology);
  CoreChooser chooser(graph, request, question);
  const Mask usable = chooser.with_free_cores();
  const Mask clean = usable & ~chooser.avoided();
  std::optional<Candidate> found = chooser.choose(question.size, clean);
  if (!found && clean != usable) found = chooser.choose(question.size, usable);
  if (found) {
    const std::vector<int> ids = chooser.ids_of(*found);
    const bool complete = std::includes(ids.begin(), ids.end(), question.must.begin(), question.must.end());
    if (complete && static_cast<int>(ids.size()) == question.size) return {ids, explain(graph, *found)};
  }
  const bool enough = chooser.free_cores(clean) >= question.size;
  std::vector<int> ids = chooser.scattered(question.must, question.size, enough ? clean : usable);
  return {allocation::fill_up(std::move(ids), question.available, question.size),
          "no range of cores is left, scattered"};
}

}  // namespace neuron::core
