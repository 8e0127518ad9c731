// What containers hold keeps its place in the lists and its meaning while the machine changes under them: a driver that
// is reloaded, hardware that is gone when the agent starts again, an LNC file that is edited.
#include <set>

#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using testing::HasSubstr;

std::set<std::string> nodes_of(const Result<sim::PodResult>& pod) {
  std::set<std::string> nodes;
  if (!pod) return nodes;
  for (const auto& device : pod->containers.at(0).devices) nodes.insert(device.container_path);
  return nodes;
}

struct Held {
  Node node;
  explicit Held(const std::string& type) : node(type) {}

  void vanish_all(const char* how) {
    for (int i = 0; i < 16; ++i) node.host.set("neuron" + std::to_string(i), how);
  }
  [[nodiscard]] bool shows(const std::string& resource, int capacity, int allocatable) {
    return node.kubelet->wait_for(
        [&] {
          return node.kubelet->capacity(resource) == capacity && node.kubelet->allocatable(resource) == allocatable;
        },
        kPatience);
  }
  void stop_agent() {
    node.agent->signal(SIGKILL);
    ASSERT_TRUE(node.agent->wait(kPatience));
  }
  // The resource is registered by the new agent, its list is the kubelet's.
  [[nodiscard]] bool registered(const std::string& resource, int times) {
    return node.kubelet->wait_for(
        [&] {
          return node.kubelet->registrations(resource) == times && node.kubelet->resource_view(resource).connected;
        },
        kPatience);
  }
};

TEST(DriverReload, EveryCoreStaysListedWhileNoDeviceIsThere) {
  for (const auto& [lnc, cores] : {std::pair<std::optional<int>, int>(std::nullopt, 64), {1, 128}}) {
    SCOPED_TRACE(cores);
    Held held("trn2.48xlarge");
    if (lnc) held.node.host.lnc(*lnc);
    held.node.start();
    ASSERT_TRUE(held.node.wait_allocatable(kCore, cores));
    ASSERT_TRUE(held.node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(held.node.run("holder", {{kCore, 8}}));
    held.vanish_all("vanish");
    EXPECT_TRUE(held.shows(kNeuron, 16, 0)) << held.node.agent->log();
    EXPECT_TRUE(held.shows(kCore, cores, 0)) << held.node.agent->log();
    ASSERT_TRUE(held.node.kubelet->remove("holder"));
    held.vanish_all("heal");
    EXPECT_TRUE(held.shows(kNeuron, 16, 16)) << held.node.agent->log();
    EXPECT_TRUE(held.shows(kCore, cores, cores)) << held.node.agent->log();
  }
}

TEST(Restart, AHeldDeviceThatIsGoneIsListedAsUnhealthy) {
  for (const char* resource : {kNeuron, kCore}) {
    SCOPED_TRACE(resource);
    Held held("trn2.48xlarge");
    held.node.start();
    ASSERT_TRUE(held.node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(held.node.wait_allocatable(kCore, 64));
    const auto pod = held.node.run("holder", {{resource, 2}});
    ASSERT_TRUE(pod) << pod.error().message;
    const std::string path = pod->containers[0].devices.at(0).container_path;
    held.stop_agent();
    held.node.host.set(path.substr(5), "vanish");
    held.node.start_agent();
    ASSERT_TRUE(held.registered(kCore, 2)) << held.node.agent->log();
    EXPECT_TRUE(held.node.kubelet->wait_for([&] { return held.node.kubelet->capacity(kNeuron) == 16; }, kPatience))
        << held.node.agent->log();
    EXPECT_TRUE(held.node.kubelet->wait_for([&] { return held.node.kubelet->capacity(kCore) == 64; }, kPatience));
    EXPECT_TRUE(held.node.kubelet->resource_view(kNeuron).unhealthy.contains(path.substr(11)));
    for (const std::string& id : pod->containers[0].ids.at(resource)) {
      const auto view = held.node.kubelet->resource_view(resource);
      EXPECT_TRUE(view.healthy.contains(id) || view.unhealthy.contains(id)) << "a held id left the list: " << id;
    }
    held.node.host.set(path.substr(5), "heal");
    ASSERT_TRUE(held.node.kubelet->remove("holder"));
    EXPECT_TRUE(held.shows(kNeuron, 16, 16)) << held.node.agent->log();
    EXPECT_TRUE(held.shows(kCore, 64, 64));
  }
}

TEST(Restart, WithAllDevicesGoneWhatIsHeldIsListed) {
  Held held("trn2.48xlarge");
  held.node.host.lnc(1);
  held.node.start();
  ASSERT_TRUE(held.node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(held.node.wait_allocatable(kCore, 128));
  const auto pod = held.node.run("holder", {{kCore, 24}});
  ASSERT_TRUE(pod);
  held.stop_agent();
  held.vanish_all("vanish");
  held.node.start_agent();
  EXPECT_TRUE(held.registered(kCore, 2)) << held.node.agent->log();
  EXPECT_TRUE(held.shows(kNeuron, 3, 0)) << held.node.agent->log();
  EXPECT_TRUE(held.shows(kCore, 24, 0)) << held.node.agent->log();
  EXPECT_THAT(held.node.agent->log(), HasSubstr("reason=device_vanished"));
}

TEST(Restart, AHeldInterfaceThatIsGoneIsListedAsUnhealthy) {
  Held held("trn1.32xlarge");
  held.node.start();
  ASSERT_TRUE(held.node.wait_allocatable(kEfa, 8));
  const auto pod = held.node.run("holder", {{kEfa, 1}});
  ASSERT_TRUE(pod);
  const std::string name = pod->containers[0].ids.at(kEfa).at(0);
  held.stop_agent();
  held.node.host.set(name, "vanish");
  held.node.start_agent();
  ASSERT_TRUE(held.registered(kEfa, 2)) << held.node.agent->log();
  EXPECT_TRUE(held.shows(kEfa, 8, 7)) << held.node.agent->log();
  EXPECT_EQ(held.node.kubelet->resource_view(kEfa).unhealthy, (sim::IdSet{name}));
  held.node.host.set(name, "heal");
  EXPECT_TRUE(held.shows(kEfa, 8, 8)) << held.node.agent->log();
}

struct LncChange : testing::Test {
  Held held{"trn2.48xlarge"};
  std::set<std::string> taken;

  void fill(int cores) {
    held.node.host.lnc(2);
    held.node.start();
    ASSERT_TRUE(held.node.wait_allocatable(kCore, 64));
    ASSERT_TRUE(held.node.wait_allocatable(kNeuron, 16));
    const auto pod = held.node.run("first", {{kCore, cores}});
    ASSERT_TRUE(pod) << pod.error().message;
    taken = nodes_of(pod);
  }
  void expect_the_old_meaning(const char* name, int cores, const char* env) {
    const auto pod = held.node.run(name, {{kCore, cores}});
    ASSERT_TRUE(pod) << pod.error().message;
    for (const std::string& device : nodes_of(pod)) {
      EXPECT_FALSE(taken.contains(device)) << device << " is wholly another's";
    }
    EXPECT_EQ(env_of(pod), env);
    EXPECT_EQ(pod->containers.at(0).env.at("NEURON_LOGICAL_NC_CONFIG"), "2") << "a runtime would read 1 of the file";
    ASSERT_TRUE(held.node.kubelet->remove(name));
  }
  void restart_with_lnc_1() {
    held.stop_agent();
    held.node.host.set("host", "lnc=1");
    held.node.start_agent();
    ASSERT_TRUE(held.registered(kCore, 2)) << held.node.agent->log();
    EXPECT_TRUE(held.node.kubelet->wait_for([&] { return held.node.kubelet->allocatable(kCore) > 0; }, kPatience));
  }
  void expect_the_change_when_nothing_is_held() {
    EXPECT_TRUE(held.node.wait_log("keep their numbers")) << held.node.agent->log();
    EXPECT_EQ(held.node.kubelet->capacity(kCore), 64) << held.node.agent->log();
    ASSERT_TRUE(held.node.kubelet->remove("first"));
    EXPECT_TRUE(held.shows(kCore, 128, 128)) << held.node.agent->log();
  }
};

TEST_F(LncChange, UnderRunningPodsWaitsUntilNothingIsHeld) {
  fill(60);
  held.node.host.set("host", "lnc=1");
  ASSERT_TRUE(held.node.wait_log("lnc=1")) << held.node.agent->log();
  expect_the_old_meaning("second", 4, "0-3");
  expect_the_change_when_nothing_is_held();
  const auto third = held.node.run("third", {{kCore, 8}});
  EXPECT_EQ(env_of(third), "0-7");
  EXPECT_FALSE(third->containers.at(0).env.contains("NEURON_LOGICAL_NC_CONFIG")) << "the file says the same";
}

TEST_F(LncChange, IsStillWaitingAfterTheAgentStartsAgain) {
  fill(60);
  restart_with_lnc_1();
  expect_the_old_meaning("second", 4, "0-3");
  expect_the_change_when_nothing_is_held();
}

// Core ids 0 and 1 beside neuron0 could be of either size; the list that the kubelet remembers tells.
TEST_F(LncChange, IsKnownAfterARestartThoughTheHeldIdsCouldMeanEither) {
  fill(2);
  restart_with_lnc_1();
  expect_the_change_when_nothing_is_held();
}

TEST_F(LncChange, OnAnEmptyNodeTakesEffectAtOnce) {
  fill(4);
  ASSERT_TRUE(held.node.wait_allocatable(kNeuron, 15));
  ASSERT_TRUE(held.node.kubelet->remove("first"));
  ASSERT_TRUE(held.node.wait_allocatable(kNeuron, 16));
  held.node.host.set("host", "lnc=1");
  EXPECT_TRUE(held.shows(kCore, 128, 128)) << held.node.agent->log();
  EXPECT_THAT(held.node.agent->log(), testing::Not(HasSubstr("keep their numbers")));
}

}  // namespace
}  // namespace neuron::fakes
