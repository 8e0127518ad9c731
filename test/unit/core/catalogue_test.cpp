#include "agent/core/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "agent/base/parse.h"

namespace neuron::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EveryType : public ::testing::TestWithParam<std::string> {
 protected:
  const core::InstanceType& type() const { return *core::find_instance_type(GetParam()); }
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const core::InstanceType& type : core::all_instance_types()) all.push_back(type.name);
  return all;
}

TEST_P(EveryType, HasWhatItsCountsSay) {
  EXPECT_EQ(type().devices.size(), static_cast<std::size_t>(type().device_count));
  EXPECT_EQ(type().family.has_value(), type().device_count > 0);
  const std::size_t addresses = type().efas.size();
  EXPECT_TRUE(addresses == 0 || addresses == static_cast<std::size_t>(type().efa_count)) << addresses;
  EXPECT_TRUE(type().efa_count_is_known || type().efa_count == 0);
  EXPECT_TRUE(std::is_sorted(type().efas.begin(), type().efas.end(),
                             [](const core::EfaFacts& a, const core::EfaFacts& b) { return a.bdf < b.bdf; }));
  EXPECT_FALSE(type().numa.empty());
  EXPECT_GT(type().vcpus, 0);
  if (!type().family) return;
  EXPECT_EQ(type().physical_cores_per_device % type().default_lnc, 0);
  EXPECT_GT(core::family_facts(*type().family).memory_bytes, 0U);
}

TEST_P(EveryType, NeighboursAreMutualAndNotOneself) {
  for (int i = 0; i < type().device_count; ++i) {
    const auto& own = type().devices[static_cast<std::size_t>(i)].neighbours;
    EXPECT_EQ(std::set<int>(own.begin(), own.end()).size(), own.size());
    for (const int other : own) {
      ASSERT_TRUE(other >= 0 && other < type().device_count && other != i);
      const auto& back = type().devices[static_cast<std::size_t>(other)].neighbours;
      EXPECT_NE(std::find(back.begin(), back.end(), i), back.end()) << i << " and " << other;
    }
  }
}

TEST_P(EveryType, NumaNodesCoverEveryCpuOnce) {
  std::vector<int> cpus;
  for (const core::NumaFacts& node : type().numa) {
    const auto list = parse_int_list(node.cpu_list, 4095);
    ASSERT_TRUE(list) << node.cpu_list;
    cpus.insert(cpus.end(), list->begin(), list->end());
  }
  std::sort(cpus.begin(), cpus.end());
  std::vector<int> expected(static_cast<std::size_t>(type().vcpus));
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(cpus, expected);
}

TEST_P(EveryType, KnownNumaNodesShareTheDevicesEvenly) {
  if (!type().numa_is_known || type().numa.size() == 1 || type().devices.empty()) return;
  std::map<int, int> per_node;
  for (const core::DeviceFacts& device : type().devices) ++per_node[device.numa_node];
  EXPECT_EQ(per_node.size(), type().numa.size());
  for (const auto& [node, count] : per_node) {
    EXPECT_EQ(count, type().device_count / static_cast<int>(type().numa.size())) << node;
  }
}

TEST_P(EveryType, NearestEfaIsAnEfaOfTheTypeOnTheSameNumaNode) {
  for (const core::DeviceFacts& device : type().devices) {
    if (!device.nearest_efa) continue;
    const auto efa = std::find_if(type().efas.begin(), type().efas.end(),
                                  [&](const core::EfaFacts& e) { return e.bdf == *device.nearest_efa; });
    ASSERT_NE(efa, type().efas.end()) << to_string(*device.nearest_efa);
    EXPECT_EQ(efa->numa_node, device.numa_node);
  }
}

TEST_P(EveryType, AddressesAreUnique) {
  std::set<model::Bdf> seen;
  std::size_t count = type().efas.size();
  for (const core::EfaFacts& efa : type().efas) {
    seen.insert(efa.bdf);
    EXPECT_GE(efa.pci_device_id, 0xefa0);
    EXPECT_LE(efa.pci_device_id, 0xefa3);
  }
  for (const core::DeviceFacts& device : type().devices) {
    if (!device.bdf) continue;
    seen.insert(*device.bdf);
    ++count;
  }
  EXPECT_EQ(seen.size(), count);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryType, ::testing::ValuesIn(names()), [](const auto& suite) {
  std::string name = suite.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
});

int hops(const core::InstanceType& type, int from, int to) {
  std::vector<int> distance(type.devices.size(), -1);
  std::vector<int> queue = {from};
  distance[static_cast<std::size_t>(from)] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const int next : type.devices[static_cast<std::size_t>(queue[i])].neighbours) {
      if (distance[static_cast<std::size_t>(next)] >= 0) continue;
      distance[static_cast<std::size_t>(next)] = distance[static_cast<std::size_t>(queue[i])] + 1;
      queue.push_back(next);
    }
  }
  return distance[static_cast<std::size_t>(to)];
}

// The device index is row * 4 + column; both wrap.
TEST(Catalogue, TorusDistancesAreThoseOfRowsAndColumns) {
  const auto wrapped = [](int a, int b) { return std::min(std::abs(a - b), 4 - std::abs(a - b)); };
  for (const core::InstanceType& type : core::all_instance_types()) {
    if (type.shape != core::TopologyShape::torus_4x4) continue;
    for (int a = 0; a < 16; ++a) {
      for (int b = 0; b < 16; ++b) {
        EXPECT_EQ(hops(type, a, b), wrapped(a / 4, b / 4) + wrapped(a % 4, b % 4)) << type.name << a << "," << b;
      }
    }
  }
}

TEST(Catalogue, Trainium1AndTrainium2ListTheSameNeighboursInTheirOwnOrder) {
  EXPECT_THAT(core::find_instance_type("trn1.32xlarge")->devices[0].neighbours, ElementsAre(12, 3, 4, 1));
  EXPECT_THAT(core::find_instance_type("trn2.48xlarge")->devices[0].neighbours, ElementsAre(12, 1, 3, 4));
  EXPECT_THAT(core::find_instance_type("trn2.48xlarge")->devices[13].neighbours, ElementsAre(12, 1, 9, 14));
}

TEST(Catalogue, ChainLineAndRing) {
  EXPECT_THAT(core::find_instance_type("inf1.6xlarge")->devices[1].neighbours, ElementsAre(2, 0));
  EXPECT_THAT(core::find_instance_type("inf2.24xlarge")->devices[5].neighbours, ElementsAre(4));
  EXPECT_THAT(core::find_instance_type("inf2.48xlarge")->devices[0].neighbours, ElementsAre(11, 1));
  EXPECT_THAT(core::find_instance_type("inf2.48xlarge")->devices[11].neighbours, ElementsAre(10, 0));
  EXPECT_THAT(core::find_instance_type("inf1.24xlarge")->devices[0].neighbours, IsEmpty());
}

struct Counts {
  const char* name;
  int devices;
  int logical_cores;
  int efas;
};

class CountsOfType : public ::testing::TestWithParam<Counts> {};

TEST_P(CountsOfType, AreWhatTheKubeletMustSee) {
  const core::InstanceType* type = core::find_instance_type(GetParam().name);
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->device_count, GetParam().devices);
  const int per_device = type->family ? type->physical_cores_per_device / type->default_lnc : 0;
  EXPECT_EQ(type->device_count * per_device, GetParam().logical_cores);
  EXPECT_EQ(type->efa_count, GetParam().efas);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CountsOfType,
                         ::testing::Values(Counts{"inf1.xlarge", 1, 4, 0}, Counts{"inf1.2xlarge", 1, 4, 0},
                                           Counts{"inf1.6xlarge", 4, 16, 0}, Counts{"inf1.24xlarge", 16, 64, 1},
                                           Counts{"inf2.xlarge", 1, 2, 0}, Counts{"inf2.8xlarge", 1, 2, 0},
                                           Counts{"inf2.24xlarge", 6, 12, 0}, Counts{"inf2.48xlarge", 12, 24, 0},
                                           Counts{"trn1.2xlarge", 1, 2, 0}, Counts{"trn1.32xlarge", 16, 32, 8},
                                           Counts{"trn1n.32xlarge", 16, 32, 16}, Counts{"trn2.3xlarge", 1, 4, 1},
                                           Counts{"trn2.48xlarge", 16, 64, 16}, Counts{"trn2u.48xlarge", 16, 64, 16},
                                           Counts{"trn3p.48xlarge", 16, 64, 16}, Counts{"trn3e.24xlarge", 4, 16, 0},
                                           Counts{"trn3sn.3xlarge", 1, 4, 0}, Counts{"p4d.24xlarge", 0, 0, 4},
                                           Counts{"p5.4xlarge", 0, 0, 1}, Counts{"p5.48xlarge", 0, 0, 32},
                                           Counts{"p5en.48xlarge", 0, 0, 16}, Counts{"p6-b200.48xlarge", 0, 0, 8},
                                           Counts{"p6-b300.48xlarge", 0, 0, 16}, Counts{"g5.48xlarge", 0, 0, 1},
                                           Counts{"c5n.18xlarge", 0, 0, 1}));

// docs/reference/topology.md#instance-types: unknown, or inferred from the size alone.
TEST(Catalogue, WhoseInterfacesNobodyHasCounted) {
  std::vector<std::string> unknown;
  for (const core::InstanceType& type : core::all_instance_types()) {
    if (!type.efa_count_is_known) unknown.push_back(type.name);
  }
  EXPECT_THAT(unknown, ElementsAre("trn2p.48xlarge", "trn2eu.48xlarge", "trn2es.48xlarge", "trn2en.24xlarge",
                                   "trn3n.48xlarge", "trn3s-es.48xlarge", "trn3sn.48xlarge", "trn3sn-es.48xlarge",
                                   "trn3e.24xlarge", "trn3e-dev0.24xlarge", "trn3en.24xlarge", "trn3pd98.3xlarge",
                                   "trn3s-es.3xlarge", "trn3sn.3xlarge", "trn3sn-es.3xlarge"));
}

std::string nearest(const char* type, std::size_t device) {
  return to_string(*core::find_instance_type(type)->devices[device].nearest_efa);
}

TEST(Catalogue, OfficialEfaTables) {
  EXPECT_EQ(nearest("trn1.32xlarge", 0), "0000:10:1a.0");
  EXPECT_EQ(nearest("trn1.32xlarge", 7), "0000:90:19.0");
  EXPECT_EQ(nearest("trn1.32xlarge", 15), "0000:a0:19.0");
  EXPECT_EQ(nearest("trn1n.32xlarge", 13), "0000:10:18.0");
  EXPECT_EQ(nearest("trn2.48xlarge", 0), "0000:c9:00.0");
  EXPECT_EQ(nearest("trn2.48xlarge", 15), "0000:f6:00.0");
  EXPECT_EQ(nearest("trn3.48xlarge", 4), "0000:61:00.0");
  EXPECT_EQ(nearest("trn3-dev0.48xlarge", 4), "0000:d5:00.0");
}

TEST(Catalogue, PciPlacesOfEfas) {
  const core::InstanceType& trn1 = *core::find_instance_type("trn1.32xlarge");
  EXPECT_EQ(trn1.efas[0].pci_parent, "pci0000:10");
  EXPECT_EQ(to_string(trn1.efas[0].bdf), "0000:10:19.0");
  const core::InstanceType& trn2 = *core::find_instance_type("trn2.48xlarge");
  std::map<std::string, std::string> parents;
  for (const core::EfaFacts& efa : trn2.efas) parents[to_string(efa.bdf)] = efa.pci_parent;
  EXPECT_EQ(parents["0000:c9:00.0"], "0000:b9:01.6");
  EXPECT_EQ(parents["0000:ca:00.0"], "0000:b9:01.7");
  EXPECT_EQ(parents["0000:56:00.0"], "0000:46:01.6");
}

TEST(Catalogue, AddressesAreStableOnlyWhereTheyWereFoundStable) {
  for (const core::InstanceType& type : core::all_instance_types())
    EXPECT_EQ(type.bdf_is_stable, type.name == "trn2.48xlarge");
  EXPECT_EQ(to_string(*core::find_instance_type("trn1.32xlarge")->devices[1].bdf), "0000:10:1e.0");
  EXPECT_FALSE(core::find_instance_type("trn3.48xlarge")->devices[0].bdf);
}

TEST(Catalogue, FindsSageMakerNamesAndRefusesOthers) {
  EXPECT_EQ(core::find_instance_type("ml.trn1.32xlarge"), core::find_instance_type("trn1.32xlarge"));
  EXPECT_EQ(core::find_instance_type("m5.large"), nullptr);
  EXPECT_EQ(core::find_instance_type(""), nullptr);
  EXPECT_EQ(core::find_instance_type("trn1.32xlarge "), nullptr);
}

TEST(Catalogue, LogicalToPhysicalOrder) {
  using model::Family;
  EXPECT_THAT(core::assumed_logical_to_physical(Family::trainium2, 0, 8), ElementsAre(4, 5, 6, 7, 2, 3, 0, 1));
  EXPECT_THAT(core::assumed_logical_to_physical(Family::trainium2, 11, 8), ElementsAre(2, 3, 0, 1, 4, 5, 6, 7));
  EXPECT_THAT(core::assumed_logical_to_physical(Family::trainium2, 6, 8), ElementsAre(0, 1, 2, 3, 6, 7, 4, 5));
  EXPECT_THAT(core::assumed_logical_to_physical(Family::trainium2, 15, 8), ElementsAre(6, 7, 4, 5, 0, 1, 2, 3));
  EXPECT_THAT(core::assumed_logical_to_physical(Family::trainium1, 3, 2), ElementsAre(0, 1));
  EXPECT_THAT(core::assumed_logical_to_physical(Family::trainium2, 0, -1), IsEmpty());
  EXPECT_THAT(core::possible_logical_to_physical(Family::trainium2, 0, 8),
              ElementsAre(ElementsAre(4, 5, 6, 7, 2, 3, 0, 1), ElementsAre(0, 1, 2, 3, 6, 7, 4, 5)));
  EXPECT_THAT(core::possible_logical_to_physical(Family::trainium3, 1, 8),
              ElementsAre(ElementsAre(2, 3, 0, 1, 4, 5, 6, 7), ElementsAre(6, 7, 4, 5, 0, 1, 2, 3)));
  EXPECT_THAT(core::possible_logical_to_physical(Family::inferentia2, 3, 2), ElementsAre(ElementsAre(0, 1)));
}

}  // namespace
}  // namespace neuron::test
