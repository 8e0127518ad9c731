// What `neuron-agent explain pod` works out, over simulated hosts and hand-made answers of the kubelet.
#include "tools/neuron-agent/explain_pod.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/health/assess.h"
#include "agent/host/scanner.h"
#include "test/fakes/fake_host.h"
#include "test/fakes/paths.h"
#include "test/unit/render/golden.h"
#include "test/unit/render/json_schema.h"

namespace neuron::agent::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kNeuron = "aws.amazon.com/neuron";
constexpr const char* kCore = "aws.amazon.com/neuroncore";
constexpr const char* kEfa = "vpc.amazonaws.com/efa";

ExplainFacts facts_of(const fakes::FakeHost& host) {
  const auto root = host::FsRoot::open(host.path());
  host::Scanner scanner(*root, {.with_topology = false, .with_processes = false});
  health::AssessMemory memory;
  ExplainFacts facts;
  facts.host = health::assess(scanner.scan(), memory, SteadyTime{}).host;
  return facts;
}

void give(ExplainFacts& facts, const std::string& pod, const std::string& resource, std::vector<std::string> ids,
          const std::string& container = "main") {
  facts.allocations.push_back({"training", pod, container, resource, std::move(ids)});
}

void claim(ExplainFacts& facts, const std::string& pod, const std::string& name, std::vector<std::string> devices) {
  facts.allocations.push_back({"training", pod, "main", "neuron.aws.com", std::move(devices), "", name});
}

// The kubelet takes all that it lists as healthy, but for these.
void list_all_but(ExplainFacts& facts, const std::set<std::string>& devices, const std::set<std::string>& cores = {}) {
  facts.allocatable.emplace();
  for (int i = 0; i < 64; ++i) {
    const std::string id = std::to_string(i);
    if (!devices.contains(id)) (*facts.allocatable)[kNeuron].insert(id);
    if (!cores.contains(id)) (*facts.allocatable)[kCore].insert(id);
  }
  for (const auto& efa : facts.host.efas) (*facts.allocatable)[kEfa].insert(efa.name);
}

void expect_golden(const std::string& name, const ExplainFacts& facts, const std::string& pod) {
  const ExplainedPod explained = explain_pod(facts, "training", pod);
  neuron::test::expect_golden("../../agent/golden/" + name + ".txt", explain_text(explained, facts));
  const std::string json = explain_json(explained, facts);
  neuron::test::expect_golden("../../agent/golden/" + name + ".json", json);
  std::ifstream file(fakes::source_dir() + "/docs/schema/neuron-explain-1.json");
  EXPECT_EQ(neuron::test::schema_violation(nlohmann::json::parse(file), nlohmann::json::parse(json)), "");
}

TEST(ExplainPod, AnAlignedGroupBesideItsInterfaces) {
  fakes::FakeHost host("trn1.32xlarge");
  ExplainFacts facts = facts_of(host.write());
  give(facts, "llama-0", kNeuron, {"4", "5", "6", "7"});
  give(facts, "llama-0", kEfa, {"rdmap144s25", "rdmap32s25"});
  list_all_but(facts, {});
  const ExplainedPod pod = explain_pod(facts, "training", "llama-0");
  EXPECT_FALSE(has_findings(pod));
  ASSERT_EQ(pod.containers.size(), 1U);
  EXPECT_EQ(pod.containers[0].nearness.shape, "aligned group of 4");
  EXPECT_EQ(pod.containers[0].nearness.hops, pod.containers[0].nearness.best_hops);
  EXPECT_EQ(pod.containers[0].nearness.near_efas, 2);
  expect_golden("explain_group", facts, "llama-0");
}

TEST(ExplainPod, AFailedDeviceFarDevicesAndForeignInterfaces) {
  fakes::FakeHost host("trn1.32xlarge");
  host.write().set("neuron9", "sram_ecc_uncorrected=2");
  ExplainFacts facts = facts_of(host);
  give(facts, "llama-1", kNeuron, {"3", "9"});
  give(facts, "llama-1", kEfa, {"rdmap16s25"});
  give(facts, "other", kNeuron, {"0", "1", "2"});
  list_all_but(facts, {"9"});
  const ExplainedPod pod = explain_pod(facts, "training", "llama-1");
  EXPECT_TRUE(has_faults(pod));
  const Nearness& near = pod.containers[0].nearness;
  EXPECT_GT(*near.hops, *near.best_hops);
  EXPECT_EQ(near.near_efas, 0);
  EXPECT_EQ(near.best_efas, 1);
  EXPECT_EQ(near.better_now.size(), 2U);
  for (const int device : near.better_now) EXPECT_TRUE(device > 2 && device != 9) << "held by others, or ill";
  expect_golden("explain_failed", facts, "llama-1");
}

TEST(ExplainPod, CoresOfAPartAreJudgedByTheirOwn) {
  fakes::FakeHost host("trn2.48xlarge");
  host.write().set("neuron5", "core_count=9");
  ExplainFacts facts = facts_of(host);
  facts.host.devices[5].core_health.assign(8, {model::HealthState::healthy, "", "", ""});
  facts.host.devices[5].core_health[7] = {model::HealthState::unhealthy, "hw_error", "it counts", "replace it"};
  facts.host.devices[5].physical_cores = {8, model::Origin::live};
  give(facts, "low", kCore, {"20", "21"});
  give(facts, "high", kCore, {"22", "23"});
  const ExplainedPod low = explain_pod(facts, "training", "low");
  const ExplainedPod high = explain_pod(facts, "training", "high");
  ASSERT_EQ(low.containers[0].devices.size(), 1U);
  EXPECT_NE(has_faults(low), has_faults(high)) << "physical core 7 is behind one of them only";
  const ExplainedDevice& device = low.containers[0].devices[0];
  EXPECT_FALSE(device.whole);
  EXPECT_EQ(device.physical_cores.size(), 4U);
  EXPECT_THAT(device.shared_with, ElementsAre("training/high/main"));
}

TEST(ExplainPod, ClaimsAreTheSameHardware) {
  fakes::FakeHost host("trn2.48xlarge");
  host.write().set("neuron13", "mem_ecc_uncorrected=1");
  ExplainFacts facts = facts_of(host);
  claim(facts, "ada", "chips", {"neuron-device-13-core-2", "efa-rdmap224s0"});
  const ExplainedPod pod = explain_pod(facts, "training", "ada");
  ASSERT_EQ(pod.containers.size(), 1U);
  EXPECT_THAT(pod.containers[0].units[0].kubelet, ElementsAre(KubeletView::unhealthy, KubeletView::healthy));
  EXPECT_THAT(pod.containers[0].devices[0].cores, ElementsAre(54));
  EXPECT_TRUE(pod.containers[0].efas[0].is_near);
  expect_golden("explain_claim", facts, "ada");
}

TEST(ExplainPod, SharesOfADeviceAreTheirCores) {
  fakes::FakeHost host("trn2.48xlarge");
  ExplainFacts facts = facts_of(host.write());
  claim(facts, "ada", "one", {"neuron-device-13-share-0-1"});
  claim(facts, "bob", "two", {"neuron-device-13-share-4-7"});
  const ExplainedPod ada = explain_pod(facts, "training", "ada"), bob = explain_pod(facts, "training", "bob");
  EXPECT_THAT(ada.containers.at(0).devices.at(0).cores, ElementsAre(52));
  EXPECT_THAT(bob.containers.at(0).devices.at(0).cores, ElementsAre(54, 55));
  EXPECT_THAT(ada.containers[0].devices[0].shared_with, ElementsAre("training/bob/main"));
}

TEST(ExplainPod, AdminAccessHoldsNothing) {
  fakes::FakeHost host("trn1.32xlarge");
  ExplainFacts facts = facts_of(host.write());
  claim(facts, "ada", "chips", {"neuron-device-3"});
  claim(facts, "monitor", "all", {"neuron-device-3"});
  facts.allocations.back().admin_access = true;
  const ExplainedPod user = explain_pod(facts, "training", "ada");
  EXPECT_THAT(user.containers.at(0).devices.at(0).shared_with, IsEmpty());
  const ExplainedPod monitor = explain_pod(facts, "training", "monitor");
  EXPECT_THAT(monitor.containers.at(0).devices, IsEmpty());
  EXPECT_THAT(explain_text(monitor, facts),
              HasSubstr("by claim all of neuron.aws.com, admin access, holds nothing: neuron-device-3"));
}

TEST(ExplainPod, WhatTheKubeletAloneTakesAsUnhealthyIsSaid) {
  fakes::FakeHost host("trn1.2xlarge");
  ExplainFacts facts = facts_of(host.write());
  give(facts, "llama-0", kNeuron, {"0"});
  list_all_but(facts, {"0"});
  const ExplainedPod pod = explain_pod(facts, "training", "llama-0");
  EXPECT_TRUE(has_faults(pod));
  EXPECT_THAT(explain_text(pod, facts), HasSubstr("a single scan shows no fault"));
}

TEST(ExplainPod, HardwareThatIsGoneAndIdsThatAreNoneAreNotHidden) {
  fakes::FakeHost host("trn1.32xlarge");
  ExplainFacts facts = facts_of(host.missing({7}).write());
  give(facts, "llama-0", kNeuron, {"7", "99", "x"});
  give(facts, "llama-0", kEfa, {"rdmap1s1"});
  const ExplainedPod pod = explain_pod(facts, "training", "llama-0");
  EXPECT_TRUE(has_faults(pod));
  const std::string text = explain_text(pod, facts);
  EXPECT_THAT(text, HasSubstr("neuron7 is unhealthy: device_vanished"));
  EXPECT_THAT(text, HasSubstr("x does not exist on this node"));
  EXPECT_THAT(text, HasSubstr("rdmap1s1 is unhealthy: efa_vanished"));
}

TEST(ExplainPod, AnInterfaceWithoutItsDriverIsThatOfItsAddress) {
  fakes::FakeHost host("trn1.32xlarge");
  host.write().set("rdmap16s25", "unbind");
  ExplainFacts facts = facts_of(host);
  give(facts, "llama-0", kEfa, {"rdmap16s25", "rdmap1s1"});
  claim(facts, "ada", "chips", {"efa-rdmap16s25"});
  add_held_interfaces(facts);
  const std::string text = explain_text(explain_pod(facts, "training", "llama-0"), facts);
  EXPECT_THAT(text, HasSubstr("rdmap16s25 is unhealthy: efa_driver_unbound"));
  EXPECT_THAT(text, HasSubstr("rdmap1s1 is unhealthy: efa_vanished"));
  EXPECT_THAT(explain_text(explain_pod(facts, "training", "ada"), facts), HasSubstr("efa_driver_unbound"));
}

TEST(ExplainPod, APodWithoutHardwareHoldsNothing) {
  fakes::FakeHost host("trn1.2xlarge");
  ExplainFacts facts = facts_of(host.write());
  give(facts, "web", "nvidia.com/gpu", {"GPU-1"});
  const ExplainedPod pod = explain_pod(facts, "training", "web");
  EXPECT_FALSE(has_findings(pod));
  EXPECT_THAT(explain_text(pod, facts), HasSubstr("holds no Neuron core or device and no EFA interface"));
  EXPECT_THAT(explain_text(pod, facts), HasSubstr("it holds nvidia.com/gpu"));
}

TEST(ChoosePod, ByFullNameOrByTheOnlyOneOfThatName) {
  const std::vector<model::Allocation> pods = {
      {"a", "train-0", "", "", {}}, {"b", "train-0", "", "", {}}, {"a", "serve-7d9f", "", "", {}}};
  EXPECT_EQ(choose_pod(pods, "a/train-0").pod_namespace, "a");
  EXPECT_EQ(choose_pod(pods, "serve-7d9f").pod_namespace, "a");
  EXPECT_FALSE(choose_pod(pods, "train-0").pod_namespace);
  EXPECT_THAT(choose_pod(pods, "train-0").near, ElementsAre("a/train-0", "b/train-0"));
  EXPECT_THAT(choose_pod(pods, "a/trian-0").near, ElementsAre("a/train-0", "b/train-0"));
  EXPECT_THAT(choose_pod(pods, "a/serve").near, ElementsAre("a/serve-7d9f"));
  EXPECT_THAT(choose_pod(pods, "c/train-0").near, ElementsAre("a/train-0", "b/train-0"));
  EXPECT_THAT(choose_pod(pods, "quite-different").near, IsEmpty());
  EXPECT_THAT(choose_pod(pods, "").near, IsEmpty());
  EXPECT_EQ(choose_pod(pods, "/").pods, 3U);
}

// Every device of every type, alone and all together: as near as can be.
TEST(ExplainPod, WhatTheNodeCanGiveIsNeverCalledWorse) {
  for (const char* type : {"inf1.6xlarge", "inf2.48xlarge", "trn1.32xlarge", "trn2.48xlarge", "trn3.48xlarge"}) {
    fakes::FakeHost host(type);
    ExplainFacts facts = facts_of(host.write());
    std::vector<std::string> all;
    for (const auto& device : facts.host.devices) {
      all.push_back(std::to_string(device.index));
      give(facts, "one-" + all.back(), kNeuron, {all.back()});
      EXPECT_FALSE(has_findings(explain_pod(facts, "training", "one-" + all.back()))) << type;
    }
    facts.allocations.clear();
    give(facts, "all", kNeuron, all);
    std::vector<std::string> efas;
    for (const auto& efa : facts.host.efas) efas.push_back(efa.name);
    give(facts, "all", kEfa, efas);
    EXPECT_FALSE(has_findings(explain_pod(facts, "training", "all"))) << type;
  }
}

}  // namespace
}  // namespace neuron::agent::test
