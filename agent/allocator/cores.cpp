#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "agent/allocator/graph.h"

// The runtime numbers the cores of the devices it sees from 0 and accepts one range only. So the visible cores must be
// the tail of the first device, all of those between, and the head of the last (in ascending device index).
namespace neuron::allocator {
namespace {

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

using Foremost = std::array<int, kNear + 1>;

// Preference among candidates of equally many devices, smaller is better (docs/allocation.md).
struct Rank {
  int off_hint = 0;  // devices outside prefer_devices
  Fit fit = Fit::shape;
  Foremost foremost{};  // of the devices' score: reluctant, misses, hops, near EFAs
  int left_over = 0;    // free cores that stay on its devices: least where others have begun already
  Score devices{};
  int fragments = 0;  // minus the sum of squares of free core runs that stay
  friend auto operator<=>(const Rank&, const Rank&) = default;
};

class CoreChooser {
 public:
  CoreChooser(const DeviceGraph& graph, const ChooseRequest& request, const Question& question)
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
    for (const int at : positions(devices)) count += std::popcount(free_[index(at)]);
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
    Preferences preferences = preferences_of(graph_, request_, size / per_device_);
    preferences.reluctant &= whole_;  // a partly used device is not available through another resource
    rater_.emplace(graph_, whole_, preferences);
    if (size <= per_device_) within_one_device(size);
    const int least = std::max(2, (size + per_device_ - 1) / per_device_);
    for (int count = least; !best_ && count <= least + 1; ++count) over_devices(size, count);
    return best_;
  }

  // After choose(): details of the devices of its answer.
  void describe(Reason& reason, Mask devices) const {
    describe_devices(reason, graph_, *rater_, devices);
    if (!request_.prefer_efas.empty()) reason.nearest = nearest_of(graph_, request_.prefer_efas, devices);
  }

  [[nodiscard]] std::vector<int> ids_of(const Candidate& candidate) const {
    std::vector<int> ids;
    for (const int at : positions(candidate.devices)) {
      for (const int core : positions(cores_of(candidate, at))) {
        ids.push_back(graph_.device(at).index * per_device_ + core);
      }
    }
    return ids;
  }

  // Without a range: the must-haves, then the devices with most free cores, so that few devices are touched.
  [[nodiscard]] std::vector<int> scattered(std::vector<int> must, int size, Mask allowed) const {
    std::vector<int> order;
    for (const int at : positions(allowed)) order.push_back(at);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const auto key = [&](int i) { return std::pair((must_devices_ & bit(i)) == 0, -std::popcount(free_[index(i)])); };
      return key(a) < key(b);
    });
    std::vector<int> ids = std::move(must);
    for (const int at : order) {
      for (const int core : positions(free_[index(at)] & ~must_[index(at)])) {
        if (static_cast<int>(ids.size()) >= size) return ids;
        ids.push_back(graph_.device(at).index * per_device_ + core);
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

  // Of equals: the lower devices, then the lower cores.
  static bool lower(const Candidate& a, const Candidate& b) {
    if (a.devices != b.devices) return better({}, a.devices, {}, b.devices);
    return std::countr_zero(a.first) < std::countr_zero(b.first);
  }

  void offer(const Candidate& candidate) {
    if ((must_devices_ & ~candidate.devices) != 0) return;
    Rank rank;
    for (const int at : positions(candidate.devices)) {
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
    std::copy_n(rank.devices.begin(), rank.foremost.size(), rank.foremost.begin());
    rank.off_hint = prefer_ != 0 ? std::popcount(candidate.devices & ~prefer_) : 0;
    rank.fit = fit_of(graph_, candidate.devices);
    if (best_ && best_rank_ < rank) return;
    if (best_ && rank == best_rank_ && !lower(candidate, *best_)) return;
    best_ = candidate;
    best_rank_ = rank;
  }

  void within_one_device(int size) {
    for (const int at : positions(allowed_)) {
      for (int first = 0; first + size <= per_device_; ++first) {
        const Cores cores = range(first, size);
        if ((cores & ~free_[index(at)]) == 0) offer({bit(at), cores, cores});
      }
    }
  }

  [[nodiscard]] int longest_tail(int at) const {
    return std::countl_one(free_[index(at)] << static_cast<unsigned>(kMaxCores - per_device_));
  }
  [[nodiscard]] int longest_head(int at) const { return std::countr_one(free_[index(at)]); }

  // The best `count` devices out of `pool` that hold `must`, as many of them hinted as can be; 0 when there are none.
  [[nodiscard]] Mask devices_from(Mask pool, Mask must, int count) const {
    if (std::popcount(pool) < count || (must & ~pool) != 0 || std::popcount(must) > count) return 0;
    const Mask hinted = (pool & prefer_) | must;
    if (prefer_ != 0 && std::popcount(hinted) >= count) return pick(graph_, *rater_, hinted, must, count);
    if (prefer_ != 0) return pick(graph_, *rater_, pool, hinted, count);
    if (!best_) return pick(graph_, *rater_, pool, must, count);
    return pick_within(graph_, *rater_, pool, must, count, {best_rank_.fit, best_rank_.devices});
  }

  // Every way to cut the two ends of these devices so that `size` cores remain.
  void offer_cuts(Mask devices, int size) {
    if (devices == 0) return;
    const int ends = size - (std::popcount(devices) - 2) * per_device_;
    for (int tail = std::max(1, ends - per_device_); tail <= std::min(per_device_, ends - 1); ++tail) {
      offer({devices, range(per_device_ - tail, tail), low_bits(ends - tail)});
    }
  }

  void over_devices(int size, int count) {
    const int ends = size - (count - 2) * per_device_;  // cores on the first and the last together
    if (ends < 2) return;
    if (must_devices_ != 0) return between_ends(allowed_, size, count);
    offer_cuts(devices_from(whole_, 0, count), size);
    const int least = ends - per_device_;  // on a partly free end beside a whole one
    if (least < 0) return between_ends(allowed_ & ~whole_, size, count);
    for (const int at : positions(allowed_ & ~whole_)) {
      const Mask end = bit(at);
      if (longest_tail(at) >= std::max(1, least)) {
        offer_cuts(devices_from((whole_ & ~(end - 1)) | end, end, count), size);
      }
      if (longest_head(at) >= std::max(1, least)) {
        offer_cuts(devices_from((whole_ & (end - 1)) | end, end, count), size);
      }
    }
    between_ends(allowed_ & ~whole_, size, count);
  }

  // Both ends out of `pool`, whole devices between them.
  void between_ends(Mask pool, int size, int count) {
    const int ends = size - (count - 2) * per_device_;
    for (const int a : positions(pool)) {
      const int tail = longest_tail(a);
      if (tail == 0) continue;
      for (const int b : positions(pool & above(a))) {
        const int head = longest_head(b);
        if (head == 0 || tail + head < ends) continue;
        const Mask both = bit(a) | bit(b);
        if (count == 2 && best_ && best_rank_.off_hint == 0 && best_rank_.fit < Fit::scattered &&
            best_rank_.foremost < Foremost{0, 0, graph_.hops(a, b), 0}) {
          continue;
        }
        const Mask between = whole_ & (bit(b) - 1) & above(a);
        offer_cuts(devices_from(between | both, both | must_devices_, count), size);
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

// Devices that these ascending cores are on.
int touched(const std::vector<int>& cores, int per_device) {
  int count = 0;
  int last = -1;
  for (const int core : cores) {
    if (core < 0 || core / per_device == last) continue;
    last = core / per_device;
    ++count;
  }
  return count;
}

}  // namespace

Choice choose_cores(const NodeTopology& topology, const ChooseRequest& request) {
  const Question question = normalise(request);
  if (auto choice = obvious(question)) return *std::move(choice);
  Reason reason;
  reason.units = question.size;
  const int per_device = topology.cores_per_device;
  if (per_device < 1 || per_device > kMaxCores) {
    reason.kind = Reason::Kind::unrated;
    return explained(fill_up(question.must, question.available, question.size), reason);
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
    if (complete && static_cast<int>(ids.size()) == question.size) {
      reason.kind = Reason::Kind::core_range;
      chooser.describe(reason, found->devices);
      return explained(ids, reason);
    }
  }
  const bool enough = chooser.free_cores(clean) >= question.size;
  std::vector<int> ids = chooser.scattered(question.must, question.size, enough ? clean : usable);
  reason.kind = Reason::Kind::core_scatter;
  ids = fill_up(std::move(ids), question.available, question.size);
  reason.devices = touched(ids, per_device);
  return explained(std::move(ids), reason);
}

}  // namespace neuron::allocator
