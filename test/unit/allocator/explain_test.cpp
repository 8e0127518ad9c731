#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

std::vector<int> sample(std::mt19937& random, const std::vector<int>& ids, unsigned percent) {
  std::vector<int> taken;
  for (const int id : ids) {
    if (random() % 100 < percent) taken.push_back(id);
  }
  return taken;
}

// What the choosers say of their own choices is what explain_* says of them.
TEST(Explain, SaysOfAChoiceWhatTheChooserSaid) {
  std::mt19937 random(41);
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "trn3.48xlarge"}) {
    const allocator::NodeTopology topology = topology_of(type);
    const auto count = static_cast<int>(topology.devices.size());
    const auto efas = range_of(0, static_cast<int>(topology.efas.size()));
    for (int round = 0; round < 200; ++round) {
      allocator::ChooseRequest request = ask(sample(random, range_of(0, count), 70), 0);
      if (request.available.size() < 2) continue;
      request.size = 1 + static_cast<int>(random() % (request.available.size() - 1));
      if (round % 3 == 0) request.avoid_devices = sample(random, range_of(0, count), 20);
      if (round % 4 == 0) request.prefer_efas = sample(random, efas, 20);
      const allocator::Choice devices = allocator::choose_devices(topology, request);
      EXPECT_EQ(allocator::phrase(allocator::explain_devices(topology, request, devices.ids)), devices.why);
      request.available = sample(random, range_of(0, count * topology.cores_per_device), 80);
      request.avoid_devices.clear();
      const allocator::Choice cores = allocator::choose_cores(topology, request);
      if (cores.reason.kind == allocator::Reason::Kind::core_range) {
        EXPECT_EQ(allocator::phrase(allocator::explain_cores(topology, request, cores.ids)), cores.why);
      } else {
        EXPECT_EQ(allocator::explain_cores(topology, request, cores.ids).kind, allocator::Reason::Kind::core_scatter);
      }
      if (efas.size() < 2) continue;
      request = ask(efas, 1 + static_cast<int>(random() % (efas.size() - 1)));
      request.prefer_devices = sample(random, range_of(0, count), 30);
      const allocator::Choice nics = allocator::choose_efas(topology, request);
      EXPECT_EQ(allocator::phrase(allocator::explain_efas(topology, request, nics.ids)), nics.why);
    }
  }
}

TEST(Explain, ForeignIdsAreUnrated) {
  const allocator::NodeTopology topology = topology_of("trn1.32xlarge");
  const allocator::ChooseRequest request = ask(range_of(0, 16), 0);
  for (const auto explain : {allocator::explain_devices, allocator::explain_cores, allocator::explain_efas}) {
    EXPECT_EQ(explain(topology, request, {}).kind, allocator::Reason::Kind::nothing);
    EXPECT_EQ(explain(topology, request, {-1}).kind, allocator::Reason::Kind::unrated);
    EXPECT_EQ(explain(topology, request, {0, 2'000'000'000}).kind, allocator::Reason::Kind::unrated);
    EXPECT_EQ(explain({}, request, {0}).kind, allocator::Reason::Kind::unrated);
    EXPECT_FALSE(allocator::phrase(explain(topology, request, {0, 0})).empty());
  }
}

TEST(Explain, EfasBesideDevices) {
  const allocator::NodeTopology trn1 = topology_of("trn1.32xlarge");
  allocator::ChooseRequest request;
  request.prefer_devices = {0, 1, 2, 3};
  const int of_0 = trn1.devices[0].near_efas[0];
  const int of_2 = trn1.devices[2].near_efas[0];
  const int of_4 = trn1.devices[4].near_efas[0];
  EXPECT_THAT(allocator::phrase(allocator::explain_efas(trn1, request, {of_0, of_2})),
              testing::StartsWith("nearest to devices 0-3, "));
  EXPECT_THAT(allocator::phrase(allocator::explain_efas(trn1, request, {of_0, of_4})),
              testing::StartsWith("1 of 2 nearest to devices 0-1, "));
  EXPECT_THAT(allocator::phrase(allocator::explain_efas(trn1, request, {of_4})),
              testing::StartsWith("none is nearest to the container's devices, "));
  request = {};
  request.free_devices = {4, 6};
  EXPECT_THAT(allocator::phrase(allocator::explain_efas(trn1, request, {of_4})),
              testing::StartsWith("nearest to free device 4, "));
  EXPECT_THAT(allocator::phrase(allocator::explain_efas(trn1, request, {of_0})), testing::StartsWith("packed, "));
}

}  // namespace
}  // namespace neuron::test
