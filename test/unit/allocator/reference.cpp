#include "test/unit/allocator/reference.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace neuron::test {
namespace {

constexpr int kFit = 61, kHops = 51, kLeft = 30, kNuma = 26, kSwitches = 21, kRuns = 16;

std::uint64_t at(int value, int shift) {
  return static_cast<std::uint64_t>(value) << static_cast<unsigned>(shift);
}
Set one(int position) {
  return Set{1} << static_cast<unsigned>(position);
}
bool has(Set set, int position) {
  return position >= 0 && (set >> static_cast<unsigned>(position) & 1U) != 0;
}

}  // namespace

Reference::Reference(const allocator::NodeTopology& topology)
    : topology_(topology), count_(static_cast<int>(topology.devices.size())), links_(topology.devices.size()) {
  const auto& devices = topology.devices;
  const bool silent = std::all_of(devices.begin(), devices.end(), [](const auto& d) { return d.neighbours.empty(); });
  hops_.assign(devices.size(), std::vector<int>(devices.size(), 64));
  for (std::size_t a = 0; a < devices.size(); ++a) {
    for (std::size_t b = 0; b < devices.size(); ++b) {
      const int x = devices[a].index;
      const int y = devices[b].index;
      const bool listed = silent ? x - y == 1 || y - x == 1
                                 : std::count(devices[a].neighbours.begin(), devices[a].neighbours.end(), y) > 0;
      if (a == b)
        hops_[a][b] = 0;
      else if (topology.switched)
        hops_[a][b] = x / 4 == y / 4 ? 1 : x / 8 == y / 8 ? 2 : 3;
      else if (listed)
        hops_[a][b] = hops_[b][a] = 1;
      if (a != b && (topology.switched || listed)) {
        links_[a] |= one(static_cast<int>(b));
        links_[b] |= one(static_cast<int>(a));
      }
    }
  }
  for (std::size_t via = 0; via < devices.size() && !topology.switched; ++via) {  // Floyd and Warshall
    for (auto& row : hops_) {
      for (std::size_t b = 0; b < devices.size(); ++b) row[b] = std::min(row[b], row[via] + hops_[via][b]);
    }
  }
  std::map<std::vector<int>, Set> by_efa;
  std::map<int, Set> by_switch;
  for (int i = 0; i < count_; ++i) {
    const auto& device = devices[static_cast<std::size_t>(i)];
    if (device.near_efas.size() == 1) by_efa[device.near_efas] |= one(i);
    if (device.pci_group >= 0) by_switch[device.pci_group] |= one(i);
  }
  for (const auto& [efa, members] : by_efa)
    if (__builtin_popcount(members) == 2) pairs_.push_back(members);
  if (pairs_.empty()) {
    for (const auto& [group, members] : by_switch)
      if (__builtin_popcount(members) == 2) pairs_.push_back(members);
  }
  for (Set set = 0; set < one(count_); ++set) {
    std::uint64_t lowest = 0;
    for (int i = 0; i < 16; ++i)
      if (!has(set, i)) lowest |= at(1, 15 - i);
    std::uint64_t key = at(fit(set), kFit) | at(hops_within(set), kHops) | at(places(set, true), kNuma) |
                        at(places(set, false), kSwitches) | at(runs(set), kRuns) | lowest;
    if (topology.ring || topology.line) key |= at(runs(set), kLeft + 9);
    alone_.push_back(key);
    left_.push_back(left_key(set));
  }
}

bool Reference::in_one_piece(Set chosen) const {
  Set reached = chosen & -chosen;
  for (Set before = 0; before != reached;) {
    before = reached;
    for (int i = 0; i < count_; ++i)
      if (has(before, i)) reached |= links_[static_cast<std::size_t>(i)] & chosen;
  }
  return reached == chosen;
}

int Reference::fit(Set chosen) const {
  const int size = __builtin_popcount(chosen);
  if (size <= 1) return 0;
  if (!in_one_piece(chosen)) return 2;
  if (!topology_.groups_of_torus) return topology_.ring || topology_.line ? 0 : 1;
  if (size != 4 && size != 8 && size != 16) return 1;
  std::set<int> groups;
  for (int i = 0; i < count_; ++i) {
    if (has(chosen, i)) groups.insert(topology_.devices[static_cast<std::size_t>(i)].index / size);
  }
  return groups.size() == 1 ? 0 : 1;
}

int Reference::hops_within(Set chosen) const {
  int sum = 0;
  for (int a = 0; a < count_; ++a) {
    for (int b = a + 1; b < count_; ++b) {
      if (has(chosen, a) && has(chosen, b)) sum += hops_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
    }
  }
  return sum;
}

int Reference::places(Set chosen, bool numa) const {
  std::set<int> found;
  for (int i = 0; i < count_; ++i) {
    const auto& device = topology_.devices[static_cast<std::size_t>(i)];
    if (has(chosen, i)) found.insert(numa ? device.numa_node : device.pci_group);
  }
  found.erase(-1);
  return static_cast<int>(found.size());
}

int Reference::runs(Set chosen) const {
  std::set<int> indices;
  for (int i = 0; i < count_; ++i)
    if (has(chosen, i)) indices.insert(topology_.devices[static_cast<std::size_t>(i)].index);
  return static_cast<int>(
      std::count_if(indices.begin(), indices.end(), [&](int i) { return !indices.contains(i - 1); }));
}

std::uint64_t Reference::left_key(Set left) const {
  if (topology_.ring || topology_.line) {  // pieces of what is left are runs
    int squares = 0;
    for (Set rest = left; rest != 0;) {
      Set piece = rest & -rest;
      for (Set before = 0; before != piece;) {
        before = piece;
        for (int i = 0; i < count_; ++i)
          if (has(before, i)) piece |= links_[static_cast<std::size_t>(i)] & left;
      }
      squares += __builtin_popcount(piece) * __builtin_popcount(piece);
      rest &= ~piece;
    }
    return at(511 - squares, kLeft);
  }
  std::map<int, int> whole;
  for (const int width : {4, 8, 16}) {
    std::map<int, int> members;
    for (int i = 0; i < count_; ++i)
      if (has(left, i)) ++members[topology_.devices[static_cast<std::size_t>(i)].index / width];
    for (const auto& [group, size] : members) whole[width] += size == width ? 1 : 0;
  }
  for (const Set pair : pairs_) whole[2] += (pair & left) == pair ? 1 : 0;
  return at((1 - whole[16]) << 9 | (2 - whole[8]) << 7 | (4 - whole[4]) << 4 | (8 - whole[2]), kLeft);
}

int Reference::class_of(int device, int efa) const {
  const auto& chip = topology_.devices[static_cast<std::size_t>(device)];
  const auto& nic = topology_.efas[static_cast<std::size_t>(efa)];
  if (std::count(chip.near_efas.begin(), chip.near_efas.end(), efa) > 0) return 0;
  if (chip.pci_group != -1 && chip.pci_group == nic.pci_group) return 1;
  return chip.numa_node != -1 && chip.numa_node == nic.numa_node ? 2 : 3;
}

std::uint64_t Reference::distance(Set chosen, const std::vector<int>& efas) const {
  std::uint64_t sum = 0;
  for (const int efa : efas) {
    int least = 3;
    for (int i = 0; i < count_; ++i)
      if (has(chosen, i)) least = std::min(least, class_of(i, efa));
    sum += static_cast<std::uint64_t>(least);
  }
  for (int i = 0; i < count_; ++i) {
    int least = 3;
    for (const int efa : efas) least = std::min(least, class_of(i, efa));
    if (has(chosen, i)) sum += static_cast<std::uint64_t>(least);
  }
  return sum;
}

// Per EFA, those of the chosen devices whose nearest it is.
std::vector<Set> Reference::served_by(const std::vector<int>& efas, Set chosen) const {
  std::vector<Set> served;
  for (const int efa : efas) {
    served.push_back(0);
    for (int i = 0; i < count_; ++i)
      if (has(chosen, i) && class_of(i, efa) == 0) served.back() |= one(i);
  }
  return served;
}

std::uint64_t Reference::missed(Set chosen, const Wanted& wanted) const {
  const bool given = !wanted.given_efas.empty();
  const auto served = served_by(given ? wanted.given_efas : wanted.free_efas, chosen);
  const auto near = served.size() - static_cast<std::size_t>(std::count(served.begin(), served.end(), Set{0}));
  const auto all = given ? served.size() : served.empty() ? 0 : static_cast<std::size_t>(wanted.efas);
  return all > near ? all - near : 0;
}

std::uint64_t Reference::apart(Set chosen, const Wanted& wanted) const {
  if (!wanted.given_efas.empty()) return distance(chosen, wanted.given_efas);
  if (wanted.free_efas.empty() || wanted.efas == 0) return 0;
  Set left = chosen;
  for (int round = 0; round < wanted.efas; ++round) {
    Set most = 0;
    for (const Set served : served_by(wanted.free_efas, left))
      if (__builtin_popcount(served) > __builtin_popcount(most)) most = served;
    left &= ~most;
  }
  return static_cast<std::uint64_t>(__builtin_popcount(left));
}

std::pair<int, int> Reference::near_each_other() const {
  std::set<int> devices, efas;
  for (const auto& device : topology_.devices) {
    for (const int efa : device.near_efas) {
      devices.insert(device.index);
      efas.insert(efa);
    }
  }
  return {static_cast<int>(devices.size()), static_cast<int>(efas.size())};
}

Wanted Reference::wanted_by(const allocator::ChooseRequest& request, int devices) const {
  const auto [near_devices, near_efas] = near_each_other();
  Wanted wanted{request.prefer_efas, request.free_efas, 0, set_of(request.reluctant_devices)};
  while (wanted.efas * near_devices < devices * near_efas) ++wanted.efas;
  return wanted;
}

Set Reference::best_devices(Set pool, Set free, Set must, int size, const Wanted& wanted) const {
  using Rank = std::array<std::uint64_t, 5>;
  Set best = 0;
  Rank best_rank{};
  for (Set set = pool; set != 0; set = (set - 1) & pool) {
    if (__builtin_popcount(set) != size || (must & ~set) != 0) continue;
    const std::uint64_t alone = key(set, free & ~set);
    if (best != 0 && alone >> kFit > best_rank[0] >> 10U) continue;
    const auto reluctant = static_cast<std::uint64_t>(__builtin_popcount(set & wanted.reluctant));
    const Rank rank{alone >> kFit << 10U | reluctant, missed(set, wanted), alone << 3U >> (kHops + 3),
                    apart(set, wanted), alone << 20U >> 20U};
    if (best != 0 && rank >= best_rank) continue;
    best_rank = rank;
    best = set;
  }
  return best;
}

Set Reference::set_of(const std::vector<int>& indices) const {
  Set set = 0;
  for (int i = 0; i < count_; ++i) {
    if (std::count(indices.begin(), indices.end(), topology_.devices[static_cast<std::size_t>(i)].index) > 0)
      set |= one(i);
  }
  return set;
}

std::vector<int> Reference::devices(const allocator::ChooseRequest& request) const {
  const Set available = set_of(request.available);
  const Set clean = available & ~set_of(request.avoid_devices);
  const Set must = set_of(request.must_include);
  const bool enough = __builtin_popcount(clean | must) >= request.size;
  const Wanted wanted = wanted_by(request, request.size);
  const Set best = enough ? best_devices(clean | must, clean, must, request.size, wanted)
                          : best_devices(available, clean, clean | must, request.size, wanted);
  std::vector<int> indices;
  for (int i = 0; i < count_; ++i)
    if (has(best, i)) indices.push_back(topology_.devices[static_cast<std::size_t>(i)].index);
  return indices;
}

struct Reference::CoreQuestion {
  const allocator::ChooseRequest& request;
  int per = 0;
  std::vector<std::vector<bool>> free, must;
  Set must_devices = 0;
  Set hinted = 0;
};

bool Reference::core_range(const CoreQuestion& question, Set allowed, std::vector<int>& answer) const {
  const int per = question.per;
  const int size = question.request.size;
  Set whole = 0;
  std::vector<int> free_count(static_cast<std::size_t>(count_));
  for (int i = 0; i < count_; ++i) {
    const auto& cores = question.free[static_cast<std::size_t>(i)];
    free_count[static_cast<std::size_t>(i)] = static_cast<int>(std::count(cores.begin(), cores.end(), true));
    if (has(allowed, i) && free_count[static_cast<std::size_t>(i)] == per) whole |= one(i);
  }
  using Rank = std::vector<std::uint64_t>;
  Rank best;
  const Wanted wanted = wanted_by(question.request, size / per);
  // [from, to) of device i, as the set's first, middle or last
  const auto offer = [&](Set set, int tail_from, int head_to) {
    std::uint64_t left_over = 0, squares = 0;
    std::vector<int> ids;
    for (int i = 0; i < count_; ++i) {
      if (!has(set, i)) continue;
      const int from = (set & (one(i) - 1)) == 0 ? tail_from : 0;
      const int to = (set >> static_cast<unsigned>(i)) == 1 ? head_to : per;
      int run = 0;
      for (int core = 0; core <= per; ++core) {
        const bool in = core < per && core >= from && core < to;
        const bool free = core < per && question.free[static_cast<std::size_t>(i)][static_cast<std::size_t>(core)];
        if (in && !free) return;
        if (!in && core < per && question.must[static_cast<std::size_t>(i)][static_cast<std::size_t>(core)]) return;
        if (in) ids.push_back(topology_.devices[static_cast<std::size_t>(i)].index * per + core);
        if (free && !in) {
          ++run;
          ++left_over;
        } else {
          squares += static_cast<std::uint64_t>(run * run);
          run = 0;
        }
      }
    }
    const std::uint64_t rank = key(set, whole & ~set);
    const auto off = question.hinted != 0 ? __builtin_popcount(set & ~question.hinted) : 0;
    Rank mine{static_cast<std::uint64_t>(off),
              rank >> kFit,
              static_cast<std::uint64_t>(__builtin_popcount(set & whole & wanted.reluctant)),
              missed(set, wanted),
              rank << 3U >> (kHops + 3),
              apart(set, wanted),
              left_over,
              rank << 20U >> 36U,
              1'000'000 - squares,
              rank & 0xffffU,
              static_cast<std::uint64_t>(ids.front())};
    if (!best.empty() && !(mine < best)) return;
    best = std::move(mine);
    answer = std::move(ids);
  };
  for (int devices = 1; devices <= count_ && best.empty(); ++devices) {
    if (size < (devices > 1 ? (devices - 2) * per + 2 : 1) || size > devices * per) continue;
    for (int a = 0; a < count_; ++a) {
      if (!has(allowed, a)) continue;
      if (devices == 1) {
        if (question.must_devices & ~one(a)) continue;
        for (int from = 0; from + size <= per; ++from) offer(one(a), from, from + size);
        continue;
      }
      for (int b = a + 1; b < count_; ++b) {
        if (!has(allowed, b)) continue;
        const Set between = whole & (one(b) - 1) & ~(one(a + 1) - 1);
        for (Set middle = between;; middle = (middle - 1) & between) {
          const Set set = middle | one(a) | one(b);
          if (__builtin_popcount(middle) == devices - 2 && (question.must_devices & ~set) == 0) {
            const int ends = size - (devices - 2) * per;
            for (int tail = 1; tail < ends; ++tail)
              if (tail <= per && ends - tail <= per) offer(set, per - tail, ends - tail);
          }
          if (middle == 0) break;
        }
      }
    }
  }
  return !best.empty();
}

std::vector<int> Reference::cores(const allocator::ChooseRequest& request) const {
  if (request.size >= static_cast<int>(request.available.size())) return request.available;
  CoreQuestion question{request, topology_.cores_per_device, {}, {}};
  const std::vector<bool> none(static_cast<std::size_t>(question.per));
  question.free = question.must = std::vector(static_cast<std::size_t>(count_), none);
  Set usable = 0, avoided = 0;
  for (int i = 0; i < count_; ++i) {
    const int index = topology_.devices[static_cast<std::size_t>(i)].index;
    const auto listed = [&](const std::vector<int>& ids, int id) { return std::count(ids.begin(), ids.end(), id) > 0; };
    for (int core = 0; core < question.per; ++core) {
      const int id = index * question.per + core;
      if (std::binary_search(request.available.begin(), request.available.end(), id)) {
        question.free[static_cast<std::size_t>(i)][static_cast<std::size_t>(core)] = true;
        usable |= one(i);
      }
      if (listed(request.must_include, id)) {
        question.must[static_cast<std::size_t>(i)][static_cast<std::size_t>(core)] = true;
        question.must_devices |= one(i);
      }
    }
    if (listed(request.avoid_devices, index)) avoided |= one(i);
    if (listed(request.prefer_devices, index)) question.hinted |= one(i);
  }
  const Set clean = usable & ~(avoided & ~question.must_devices);
  std::vector<int> answer;
  if (core_range(question, clean, answer) || core_range(question, usable, answer)) return answer;
  return {};  // scattered: checked for validity only
}

}  // namespace neuron::test
