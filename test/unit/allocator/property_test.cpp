#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "agent/allocator/graph.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using allocator::Mask;
using Chooser = allocator::Choice (*)(const allocator::NodeTopology&, const allocator::ChooseRequest&);

std::vector<int> members(Mask mask) {
  std::vector<int> ids;
  for (; mask != 0; mask &= mask - 1) ids.push_back(std::countr_zero(mask));
  return ids;
}

// The best connected subset, else the best at all, by trying every one.
Mask brute_force(const allocator::DeviceGraph& graph, const allocator::Rater& rater, Mask pool, Mask must, int size) {
  for (const bool connected : {true, false}) {
    std::optional<Mask> best;
    allocator::Score best_score{};
    for (Mask set = pool; set != 0; set = (set - 1) & pool) {
      if (std::popcount(set) != size || (must & ~set) != 0 || (connected && !graph.connected(set))) continue;
      const allocator::Score score = rater.rate(set, graph.hop_sum(set));
      if (best && !allocator::better(score, set, best_score, *best)) continue;
      best = set;
      best_score = score;
    }
    if (best) return *best;
  }
  return 0;
}

TEST(AllocatorProperty, SearchFindsWhatBruteForceFinds) {
  std::mt19937 random(7);
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "trn3.48xlarge", "inf1.24xlarge"}) {
    const allocator::NodeTopology topology = topology_of(type);
    const allocator::DeviceGraph graph(topology);
    for (int round = 0; round < 40; ++round) {
      const Mask pool = random() & ((Mask{1} << static_cast<unsigned>(graph.size())) - 1);
      if (pool == 0) continue;
      const int size = 1 + static_cast<int>(random() % static_cast<unsigned>(std::popcount(pool)));
      Mask must = pool & random() & random() & random();
      while (std::popcount(must) > size) must &= must - 1;
      allocator::Preferences preferences;
      if (round % 2 != 0) preferences.prefer_efas = {0, 3};
      const allocator::Rater rater(graph, pool, preferences);
      EXPECT_EQ(members(allocator::best_subset(graph, rater, pool, must, size)),
                members(brute_force(graph, rater, pool, must, size)))
          << type << " pool " << pool << " must " << must << " size " << size;
    }
  }
}

void expect_valid(const allocator::Choice& choice, const allocator::ChooseRequest& request) {
  const auto& available = request.available;
  const auto all = static_cast<int>(std::set<int>(available.begin(), available.end()).size());
  const int size = std::clamp(request.size, 0, all);
  ASSERT_EQ(static_cast<int>(choice.ids.size()), size);
  ASSERT_TRUE(std::is_sorted(choice.ids.begin(), choice.ids.end()));
  ASSERT_EQ(std::adjacent_find(choice.ids.begin(), choice.ids.end()), choice.ids.end());
  for (const int id : choice.ids) ASSERT_NE(std::find(available.begin(), available.end(), id), available.end());
  int missing = 0;
  for (const int id : std::set<int>(request.must_include.begin(), request.must_include.end())) {
    const bool offered = std::find(available.begin(), available.end(), id) != available.end();
    if (offered && std::find(choice.ids.begin(), choice.ids.end(), id) == choice.ids.end()) ++missing;
  }
  if (static_cast<int>(request.must_include.size()) <= size) {
    ASSERT_EQ(missing, 0);
  }
  ASSERT_FALSE(choice.why.empty());
}

// Ids that exist, that do not, negative ones, repeated, in any order.
std::vector<int> random_ids(std::mt19937& random, int limit) {
  std::vector<int> ids;
  const auto count = random() % 40;
  for (unsigned i = 0; i < count; ++i) {
    const int kind = static_cast<int>(random() % 20);
    const int within = static_cast<int>(random() % static_cast<unsigned>(limit + 1));
    ids.push_back(kind == 0 ? -within : kind == 1 ? 1'000'000'007 : kind == 2 ? limit + within : within);
  }
  return ids;
}

TEST(AllocatorProperty, AnyInputGivesAValidAndRepeatableAnswer) {
  std::mt19937 random(11);
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "inf1.6xlarge", "trn3e.24xlarge",
                           "p5.48xlarge", "trn1.2xlarge", "no such type"}) {
    const allocator::NodeTopology topology =
        std::string(type) == "no such type" ? allocator::NodeTopology{} : topology_of(type);
    for (int round = 0; round < 150; ++round) {
      allocator::ChooseRequest request;
      request.available = random_ids(random, round % 2 == 0 ? 16 : 64);
      if (round % 3 != 0) request.must_include = random_ids(random, 16);
      request.must_include.resize(std::min<std::size_t>(request.must_include.size(), random() % 5));
      request.size = static_cast<int>(random() % 50) - 5;
      request.prefer_devices = round % 4 == 0 ? random_ids(random, 16) : std::vector<int>{};
      request.prefer_efas = round % 5 == 0 ? random_ids(random, 16) : std::vector<int>{};
      request.avoid_devices = round % 6 == 0 ? random_ids(random, 16) : std::vector<int>{};
      request.free_devices = random_ids(random, 16);
      for (const Chooser choose : {&allocator::choose_devices, &allocator::choose_cores, &allocator::choose_efas}) {
        const allocator::Choice choice = choose(topology, request);
        ASSERT_NO_FATAL_FAILURE(expect_valid(choice, request)) << type << " round " << round;
        EXPECT_EQ(choice.ids, choose(topology, request).ids);
      }
    }
  }
}

TEST(AllocatorProperty, ExtremeSizes) {
  const allocator::NodeTopology topology = topology_of("trn2.48xlarge");
  for (const Chooser choose : {&allocator::choose_devices, &allocator::choose_cores, &allocator::choose_efas}) {
    for (const int size : {std::numeric_limits<int>::min(), -1, 0}) {
      EXPECT_TRUE(choose(topology, ask(range_of(0, 16), size)).ids.empty());
    }
    for (const int size : {16, 17, std::numeric_limits<int>::max()}) {
      EXPECT_EQ(choose(topology, ask(range_of(0, 16), size)).ids, range_of(0, 16));
    }
    EXPECT_TRUE(choose(topology, ask({}, 3)).ids.empty());
  }
}

TEST(AllocatorProperty, MoreDevicesThanAnyNodeHas) {
  allocator::NodeTopology topology;
  for (int i = 0; i < 100; ++i) topology.devices.push_back({i, i / 25, -1, {i - 1, i + 1}, {}});
  topology.cores_per_device = 8;
  for (const int size : {1, 5, 40, 90}) {
    EXPECT_EQ(allocator::choose_devices(topology, ask(range_of(0, 100), size)).ids.size(),
              static_cast<std::size_t>(size));
    EXPECT_EQ(allocator::choose_cores(topology, ask(range_of(0, 800), size)).ids.size(),
              static_cast<std::size_t>(size));
  }
  EXPECT_EQ(allocator::choose_devices(topology, ask(range_of(20, 30), 5)).ids, range_of(20, 5));
}

}  // namespace
}  // namespace neuron::test
