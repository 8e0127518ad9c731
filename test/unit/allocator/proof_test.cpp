// The allocator against everything tried on small nodes; on large ones every fifth set of free units, in a debug build
// fewer. NEURON_PROOF=all tries all sets (test/deep.sh --only model).
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "test/unit/allocator/reference.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

#ifdef NDEBUG
constexpr bool kDebug = false;
#else
constexpr bool kDebug = true;
#endif

// One of so many sets or rounds is tried. No power of two, so that each unit is free in half of them.
Set one_of(Set in_release, Set in_debug) {
  if (std::getenv("NEURON_PROOF") != nullptr) return 1;
  return kDebug ? in_debug : in_release;
}

std::vector<int> indices(const allocator::NodeTopology& topology, Set set) {
  std::vector<int> found;
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    if ((set >> i & 1U) != 0) found.push_back(topology.devices[i].index);
  }
  return found;
}

std::vector<int> sample(std::mt19937& random, const std::vector<int>& ids, unsigned percent) {
  std::vector<int> taken;
  for (const int id : ids) {
    if (random() % 100 < percent) taken.push_back(id);
  }
  return taken;
}

class DeviceProof : public ::testing::TestWithParam<const char*> {};

TEST_P(DeviceProof, AllFreeSetsAndSizes) {
  const allocator::NodeTopology topology = topology_of(GetParam());
  const Reference reference(topology);
  const auto sets = Set{1} << topology.devices.size();
  const Set step = sets <= 4096 ? 1 : one_of(5, 331);
  long cases = 0;
  long differences = 0;
  for (Set pool = 1; pool < sets; pool += step) {
    std::vector<Set> best(17);
    std::vector<std::uint64_t> best_key(17, ~std::uint64_t{0});
    for (Set set = pool; set != 0; set = (set - 1) & pool) {
      const auto size = static_cast<std::size_t>(__builtin_popcount(set));
      const std::uint64_t key = reference.key(set, pool & ~set);
      if (key < best_key[size]) {
        best_key[size] = key;
        best[size] = set;
      }
    }
    allocator::ChooseRequest request = ask(indices(topology, pool), 0);
    for (request.size = 1; request.size <= __builtin_popcount(pool); ++request.size, ++cases) {
      const auto expected = indices(topology, best[static_cast<std::size_t>(request.size)]);
      if (allocator::choose_devices(topology, request).ids == expected) continue;
      if (++differences > 3) continue;
      EXPECT_EQ(allocator::choose_devices(topology, request).ids, expected) << "pool " << pool;
    }
  }
  EXPECT_EQ(differences, 0) << "of " << cases;
  RecordProperty("cases", std::to_string(cases));
  std::printf("%s: %ld cases\n", GetParam(), cases);
}

TEST_P(DeviceProof, MustIncludeHintsAndAvoidance) {
  const allocator::NodeTopology topology = topology_of(GetParam());
  const Reference reference(topology);
  const auto all = indices(topology, (Set{1} << topology.devices.size()) - 1);
  std::mt19937 random(21);
  for (int round = 0; round < 3000 / static_cast<int>(one_of(1, 30)); ++round) {
    allocator::ChooseRequest request = ask(sample(random, all, 70), 0);
    if (request.available.empty()) continue;
    request.size = 1 + static_cast<int>(random() % request.available.size());
    request.must_include = sample(random, request.available, 15);
    request.must_include.resize(std::min(request.must_include.size(), static_cast<std::size_t>(request.size)));
    if (round % 2 == 0) request.avoid_devices = sample(random, all, 30);
    const auto efas = range_of(0, static_cast<int>(topology.efas.size()));
    if (round % 3 == 0) request.prefer_efas = sample(random, efas, 20);
    if (round % 3 != 2) request.free_efas = sample(random, efas, static_cast<unsigned>(20 + random() % 70));
    if (round % 5 == 0) request.reluctant_devices = sample(random, all, 30);
    ASSERT_EQ(allocator::choose_devices(topology, request).ids, reference.devices(request)) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceProof,
                         ::testing::Values("trn1.32xlarge", "trn2.48xlarge", "trn3.48xlarge", "inf2.48xlarge",
                                           "inf2.24xlarge", "inf1.6xlarge", "inf1.24xlarge"));

void compare_cores(const allocator::NodeTopology& topology, const Reference& reference,
                   const allocator::ChooseRequest& request) {
  const auto expected = reference.cores(request);
  const allocator::Choice choice = allocator::choose_cores(topology, request);
  ASSERT_EQ(choice.ids.size(), static_cast<std::size_t>(request.size));
  if (expected.empty()) {
    ASSERT_EQ(choice.reason.kind, allocator::Reason::Kind::core_scatter);
    ASSERT_TRUE(
        std::includes(choice.ids.begin(), choice.ids.end(), request.must_include.begin(), request.must_include.end()));
  } else {
    ASSERT_EQ(choice.ids, expected) << choice.why;
  }
}

TEST(CoreProof, SmallNodesExhaustively) {
  for (const char* type : {"inf1.2xlarge", "inf2.xlarge", "trn1.2xlarge", "trn2.3xlarge", "inf1.6xlarge"}) {
    const allocator::NodeTopology topology = topology_of(type);
    const Reference reference(topology);
    const int count = static_cast<int>(topology.devices.size()) * topology.cores_per_device;
    ASSERT_LE(count, 16) << type;
    const Set step = count <= 8 ? 1 : one_of(5, 37);
    for (Set free = 1; free < Set{1} << static_cast<unsigned>(count); free += step) {
      std::vector<int> ids;
      for (int i = 0; i < count; ++i)
        if ((free >> static_cast<unsigned>(i) & 1U) != 0) ids.push_back(i);
      for (int size = 1; size <= static_cast<int>(ids.size()); ++size) {
        ASSERT_NO_FATAL_FAILURE(compare_cores(topology, reference, ask(ids, size)))
            << type << " " << free << " " << size;
      }
    }
  }
}

class CoreCases : public ::testing::TestWithParam<const char*> {};

// Free cores come as whole devices, partly used ones and full ones, in changing shares.
TEST_P(CoreCases, RandomCases) {
  const allocator::NodeTopology topology = topology_of(GetParam());
  const Reference reference(topology);
  const int per = topology.cores_per_device;
  std::mt19937 random(22);
  long done = 0;
  for (const long wanted = 260'000 / one_of(5, 650); done < wanted;) {
    allocator::ChooseRequest request;
    const auto whole = random() % 70;
    const auto partial = random() % 60;
    for (const auto& device : topology.devices) {
      const bool full = random() % 100 < whole;
      const bool some = random() % 100 < partial;
      for (int core = 0; core < per; ++core) {
        if (full || (some && random() % 2 == 0)) request.available.push_back(device.index * per + core);
      }
    }
    const auto all = static_cast<unsigned>(request.available.size());
    if (all < 2) continue;
    request.size = 1 + static_cast<int>(random() % (all - 1));
    if (random() % 4 == 0) {
      for (auto i = random() % 3 + 1; i > 0; --i) request.must_include.push_back(request.available[random() % all]);
      std::sort(request.must_include.begin(), request.must_include.end());
      request.must_include.erase(std::unique(request.must_include.begin(), request.must_include.end()),
                                 request.must_include.end());
      request.must_include.resize(std::min(request.must_include.size(), static_cast<std::size_t>(request.size)));
    }
    if (random() % 8 == 0) request.avoid_devices = sample(random, range_of(0, 16), 30);
    if (random() % 8 == 0) request.prefer_devices = sample(random, range_of(0, 16), 30);
    const auto efas = range_of(0, static_cast<int>(topology.efas.size()));
    if (random() % 8 == 0) request.prefer_efas = sample(random, efas, 20);
    if (random() % 4 == 0) request.free_efas = sample(random, efas, static_cast<unsigned>(20 + random() % 70));
    if (random() % 16 == 0) request.reluctant_devices = sample(random, range_of(0, 16), 30);
    ASSERT_NO_FATAL_FAILURE(compare_cores(topology, reference, request)) << "case " << done;
    ++done;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CoreCases,
                         ::testing::Values("trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "inf1.24xlarge"));

TEST(EfaProof, RandomCases) {
  std::mt19937 random(23);
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge", "p5.48xlarge"}) {
    const allocator::NodeTopology topology = topology_of(type);
    const Reference reference(topology);
    for (int round = 0; round < 3000 / static_cast<int>(one_of(1, 30)); ++round) {
      allocator::ChooseRequest request =
          ask(sample(random, range_of(0, static_cast<int>(topology.efas.size())), 60), 0);
      if (request.available.size() < 2) continue;
      request.size = 1 + static_cast<int>(random() % (request.available.size() - 1));
      request.must_include = sample(random, request.available, 10);
      request.must_include.resize(std::min(request.must_include.size(), static_cast<std::size_t>(request.size)));
      if (!topology.devices.empty() && round % 3 == 0) request.prefer_devices = sample(random, range_of(0, 16), 30);
      if (round % 3 == 1) request.free_devices = sample(random, range_of(0, 16), 70);
      for (auto i = round % 2 == 0 ? random() % 6 : 0; i > 0; --i)
        request.likely_sizes.push_back(static_cast<int>(random() % 10));
      ASSERT_EQ(allocator::choose_efas(topology, request).ids, reference.efas(request)) << type << " round " << round;
    }
  }
}

}  // namespace
}  // namespace neuron::test
