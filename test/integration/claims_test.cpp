// The real agent in DRA mode, between a kubelet and an API server that behave.
#include "test/integration/claims_node.h"

#include <fstream>
#include <sstream>
#include <thread>

#include "plugin/dra/claim/claim_request.h"
#include "plugin/kubelet/socket_file.h"
#include "test/fakes/sanitized.h"
#include "test/fakes/tcp_client.h"

namespace neuron::fakes {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Json = nlohmann::json;

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(directory)) names.push_back(file.path().filename());
  return names;
}

std::size_t devices_of(const std::vector<Json>& slices) {
  std::size_t count = 0;
  for (const Json& slice : slices) count += slice.at("spec").value("devices", Json::array()).size();
  return count;
}

struct Claims : testing::Test {
  ClaimsNode node{"trn1.32xlarge"};

  // The claim and its pod exist; as the kubelet names it.
  FakeDraKubelet::Claim make_claim(const std::string& name, const std::vector<std::string>& devices) {
    node.put("/api/v1/namespaces/team/pods", pod_of(name));
    const Json stored = node.put(kClaims, allocated(name, devices));
    return {"team", name, stored.at("metadata").at("uid").get<std::string>()};
  }
  bool wait_published() {
    return node.wait_for([&] { return devices_of(node.slices()) > 0; });
  }
};

TEST_F(Claims, FromRegistrationToTheEndOfAClaim) {
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  ASSERT_TRUE(wait_published()) << node.agent->log();
  EXPECT_TRUE(node.wait_for([&] { return node.kubelet->health().contains("node-1/neuron-device-0"); }));

  const auto claim = make_claim("train", {"neuron-device-4", "neuron-device-5"});
  const auto prepared = node.kubelet->prepare(kDriver, {claim});
  ASSERT_TRUE(prepared.status.ok()) << prepared.status.error_message();
  const auto& answer = prepared.claims.at(claim.uid);
  ASSERT_EQ(answer.error, "") << node.agent->log();
  ASSERT_THAT(answer.devices, SizeIs(2));
  EXPECT_EQ(answer.devices[0].device, "neuron-device-4");
  const auto files = files_in(node.cdi_dir());
  ASSERT_THAT(files, SizeIs(1));
  const std::string spec = text_of(node.cdi_dir() + "/" + files[0]);
  EXPECT_THAT(spec, HasSubstr("/dev/neuron4"));
  EXPECT_THAT(spec, HasSubstr("NEURON_RT_VISIBLE_CORES=0-3"));

  EXPECT_EQ(node.kubelet->prepare(kDriver, {claim}).claims.at(claim.uid).error, "") << "and again";
  const auto unprepared = node.kubelet->unprepare(kDriver, {claim});
  EXPECT_EQ(unprepared.claims.at(claim.uid).error, "");
  EXPECT_THAT(files_in(node.cdi_dir()), IsEmpty());

  const auto begun = std::chrono::steady_clock::now();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(kLong), 0) << node.agent->log();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_THAT(files_in(node.kubelet_dir + "/plugins_registry"), IsEmpty());
}

TEST_F(Claims, SharesOfADeviceOutlastTheAgent) {
  node.extra_arguments = {"--dra-shares", "on"};
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  ASSERT_TRUE(wait_published()) << node.agent->log();
  EXPECT_EQ(node.slices()[0]["spec"]["devices"][0].value("allowMultipleAllocations", false), true);
  const auto share = [&](const std::string& name) {
    node.put("/api/v1/namespaces/team/pods", pod_of(name));
    Json claim = allocated(name, {"neuron-device-4"});
    Json& result = claim["status"]["allocation"]["devices"]["results"][0];
    result["shareID"] = name;
    result["consumedCapacity"] = {{"cores", "1"}, {"memory", "0"}};
    const Json stored = node.put(kClaims, claim);
    return FakeDraKubelet::Claim{"team", name, stored.at("metadata").at("uid").get<std::string>()};
  };
  const auto prepare = [&](const FakeDraKubelet::Claim& claim) {
    return node.kubelet->prepare(kDriver, {claim}).claims.at(claim.uid);
  };
  const auto file_of = [&](const FakeDraKubelet::Claim& claim) {
    return text_of(node.cdi_dir() + "/k8s.neuron.aws.com-claim_" + claim.uid + ".json");
  };
  const auto first = share("first"), second = share("second"), third = share("third");
  EXPECT_EQ(prepare(first).error, "") << node.agent->log();
  EXPECT_EQ(prepare(second).error, "");
  EXPECT_THAT(file_of(first), HasSubstr("-neuron-device-4-share-0-0\""));
  EXPECT_THAT(file_of(second), HasSubstr("-neuron-device-4-share-1-1\""));
  EXPECT_THAT(prepare(third).error, HasSubstr("0 are healthy and free"));
  EXPECT_EQ(node.kubelet->unprepare(kDriver, {first}).claims.at(first.uid).error, "");
  node.agent->signal(SIGKILL);
  ASSERT_EQ(node.agent->wait(kLong), -SIGKILL);
  const int before = node.kubelet->registrations();
  node.start_agent();
  ASSERT_TRUE(node.wait_for([&] { return node.kubelet->registrations() > before; })) << node.agent->log();
  EXPECT_EQ(prepare(second).error, "") << "as before";
  EXPECT_THAT(file_of(second), HasSubstr("-neuron-device-4-share-1-1\""));
  EXPECT_EQ(prepare(third).error, "");
  EXPECT_THAT(file_of(third), HasSubstr("-neuron-device-4-share-0-0\""));
}

TEST_F(Claims, OneDeviceIsNotGivenToTwo) {
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  const auto first = make_claim("first", {"neuron-device-4"});
  ASSERT_EQ(node.kubelet->prepare(kDriver, {first}).claims.at(first.uid).error, "") << node.agent->log();
  const auto second = make_claim("second", {"neuron-device-4-core-1"});
  EXPECT_THAT(node.kubelet->prepare(kDriver, {second}).claims.at(second.uid).error, HasSubstr("first"));
  EXPECT_EQ(node.kubelet->unprepare(kDriver, {first}).claims.at(first.uid).error, "");
  EXPECT_EQ(node.kubelet->prepare(kDriver, {second}).claims.at(second.uid).error, "");
}

TEST_F(Claims, WhatIsPreparedOutlivesACrash) {
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  const auto claim = make_claim("train", {"neuron-device-4"});
  ASSERT_EQ(node.kubelet->prepare(kDriver, {claim}).claims.at(claim.uid).error, "") << node.agent->log();
  node.agent->signal(SIGKILL);
  ASSERT_EQ(node.agent->wait(kLong), -SIGKILL);
  const auto files = files_in(node.cdi_dir());
  std::filesystem::remove(node.cdi_dir() + "/" + files.at(0));
  const int before = node.kubelet->registrations();
  node.start_agent();
  ASSERT_TRUE(node.wait_for([&] { return node.kubelet->registrations() > before; })) << node.agent->log();
  EXPECT_EQ(files_in(node.cdi_dir()), files) << "written again at the start";
  const auto other = make_claim("other", {"neuron-device-4"});
  EXPECT_THAT(node.kubelet->prepare(kDriver, {other}).claims.at(other.uid).error, HasSubstr("train"));
  EXPECT_EQ(node.kubelet->unprepare(kDriver, {claim}).claims.at(claim.uid).error, "");
  EXPECT_THAT(files_in(node.cdi_dir()), IsEmpty());
}

TEST_F(Claims, SlicesThatAreDeletedComeBack) {
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  ASSERT_TRUE(wait_published()) << node.agent->log();
  const auto stored = node.slices();
  const std::size_t devices = devices_of(stored);
  for (const Json& slice : stored) {
    node.remove("/apis/resource.k8s.io/v1/resourceslices/" + slice.at("metadata").at("name").get<std::string>());
  }
  EXPECT_TRUE(node.wait_for([&] { return devices_of(node.slices()) == devices; })) << node.agent->log();
}

TEST_F(Claims, AnUnhealthyDeviceIsTaintedAndTheKubeletHearsOfIt) {
  node.start();
  ASSERT_TRUE(wait_published()) << node.agent->log();
  const auto is_tainted = [&] {
    for (const Json& slice : node.slices()) {
      for (const Json& device : slice.at("spec").value("devices", Json::array())) {
        if (device.at("name") == "neuron-device-3" && device.contains("taints")) return true;
      }
    }
    return false;
  };
  const auto health = [&] { return node.kubelet->health()["node-1/neuron-device-3"]; };
  EXPECT_FALSE(is_tainted());
  node.host.set("neuron3", "stats/hardware/sram_ecc_uncorrected=1");
  EXPECT_TRUE(node.wait_for(is_tainted)) << node.agent->log();
  EXPECT_TRUE(node.wait_for([&] { return health().status == v1alpha1::UNHEALTHY; }));
  EXPECT_THAT(health().message, HasSubstr("uncorrected SRAM error"));
}

// As in the pod of the manifests, which is shown its own directory of plugins/ alone: no file of the driver's earlier
// name is to be seen, and the kubelet's list is all there is.
TEST_F(Claims, WhatClaimsOfTheDriversEarlierNameHoldIsTaintedAndRefused) {
  v1::ListPodResourcesResponse pods;
  auto* pod = pods.add_pod_resources();
  pod->set_namespace_("team");
  pod->set_name("from-before");
  auto* container = pod->add_containers();
  container->set_name("main");
  auto* claim = container->add_dynamic_resources();
  claim->set_claim_namespace("team");
  claim->set_claim_name("chips");
  auto* device = claim->add_claim_resources();
  device->set_driver_name("chips.example.com");
  device->set_pool_name("node-1");
  device->set_device_name("neuron-device-3");
  node.host.write();
  node.kubelet.emplace(node.kubelet_dir);
  node.kubelet->list_pods(pods);
  node.start_agent();
  ASSERT_TRUE(wait_published()) << node.agent->log();
  EXPECT_THAT(files_in(node.kubelet_dir + "/plugins"), testing::ElementsAre(kDriver));
  const auto taint_of = [&](const std::string& name) -> std::string {
    for (const Json& slice : node.slices()) {
      for (const Json& one : slice.at("spec").value("devices", Json::array())) {
        if (one.at("name") == name && one.contains("taints")) return one.at("taints").at(0).at("value");
      }
    }
    return "";
  };
  EXPECT_EQ(taint_of("neuron-device-3"), "other-driver") << node.agent->log();
  EXPECT_EQ(taint_of("neuron-device-4"), "");
  const auto late = make_claim("late", {"neuron-device-3-core-0"});
  EXPECT_THAT(node.kubelet->prepare(kDriver, {late}).claims.at(late.uid).error,
              HasSubstr("is held by team/from-before/main, which was allocated it through chips.example.com"));
}

TEST_F(Claims, ReadyOnceTheKubeletTookItAndTheSlicesAreStored) {
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0"};
  node.host.write();
  node.start_agent();  // no kubelet yet
  const std::string said = "probe server listening address=127.0.0.1:";
  ASSERT_TRUE(node.wait_for([&] { return node.agent->log().find(said) != std::string::npos; }));
  const std::string log = node.agent->log();
  const auto port = static_cast<std::uint16_t>(std::stoi(log.substr(log.find(said) + said.size())));
  const auto waiting = http_get(port, "/readyz");
  EXPECT_EQ(waiting.status, 503);
  EXPECT_THAT(waiting.body, HasSubstr("driver neuron.aws.com: waiting for the kubelet"));
  node.kubelet.emplace(node.kubelet_dir);
  EXPECT_TRUE(node.wait_for([&] { return http_get(port, "/readyz").status == 200; })) << node.agent->log();
  EXPECT_THAT(http_get(port, "/readyz").body, HasSubstr("driver neuron.aws.com: registered\nslices: "));
}

TEST_F(Claims, MetricsSayWhatWasPreparedAndRefused) {
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0"};
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  const auto claim = make_claim("train", {"neuron-device-4"});
  ASSERT_EQ(node.kubelet->prepare(kDriver, {claim}).claims.at(claim.uid).error, "") << node.agent->log();
  const FakeDraKubelet::Claim unknown{"team", "nobody", "uid-of-nobody"};
  ASSERT_NE(node.kubelet->prepare(kDriver, {unknown}).claims.at(unknown.uid).error, "");
  const std::string log = node.agent->log();
  const std::string said = "probe server listening address=127.0.0.1:";
  const auto port = static_cast<std::uint16_t>(std::stoi(log.substr(log.find(said) + said.size())));
  const std::string text = http_get(port, "/metrics").body;
  for (const char* line :
       {"neuron_agent_allocations_total{resource=\"neuron.aws.com\"} 1\n",
        "neuron_agent_refusals_total{reason=\"no_claim\"} 1\n",
        "neuron_agent_call_seconds_count{method=\"NodePrepareResources\"} 2\n",
        "neuron_agent_calls_failed_total{method=\"NodePrepareResources\"} 1\n",
        "neuron_agent_registered{resource=\"neuron.aws.com\"} 1\n", "neuron_agent_api_calls_total{outcome=\"ok\"} "}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(Claims, CountersAreThereBeforeTheirFirstEvent) {
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0"};
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  const std::string log = node.agent->log();
  const std::string said = "probe server listening address=127.0.0.1:";
  const auto port = static_cast<std::uint16_t>(std::stoi(log.substr(log.find(said) + said.size())));
  const std::string text = http_get(port, "/metrics").body;
  EXPECT_THAT(text, HasSubstr("neuron_agent_allocations_total{resource=\"neuron.aws.com\"} 0\n"));
  for (const std::string_view reason : plugin::dra::kRefusalReasons) {
    EXPECT_THAT(text, HasSubstr("neuron_agent_refusals_total{reason=\"" + std::string(reason) + "\"} 0\n"));
  }
  for (const char* method : {"NodePrepareResources", "NodeUnprepareResources"}) {
    EXPECT_THAT(text, HasSubstr("neuron_agent_calls_failed_total{method=\"" + std::string(method) + "\"} 0\n"));
    EXPECT_THAT(text, HasSubstr("neuron_agent_call_seconds_count{method=\"" + std::string(method) + "\"} 0\n"));
  }
}

TEST_F(Claims, TwoInstancesOverlap) {
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  const auto claim = make_claim("train", {"neuron-device-4"});
  ASSERT_EQ(node.kubelet->prepare(kDriver, {claim}).claims.at(claim.uid).error, "") << node.agent->log();
  AgentProcess next(node.arguments("uid-2"), node.kubelet_dir + "/next.log");
  ASSERT_TRUE(node.wait_for([&] { return node.kubelet->taken(kDriver) == 2; })) << next.log();
  node.agent->signal(SIGTERM);
  ASSERT_EQ(node.agent->wait(kLong), 0);
  ASSERT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->taken(kDriver) == 1; }, kLong));
  EXPECT_EQ(node.kubelet->unprepare(kDriver, {claim}).claims.at(claim.uid).error, "") << "by the other";
  EXPECT_THAT(files_in(node.cdi_dir()), IsEmpty());
}

std::size_t resident_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  }
  return 0;
}

TEST(ClaimsOnALargeNode, MemoryStaysSmallWithEverythingOn) {
  if (kSanitized) GTEST_SKIP() << "which needs memory of its own";
  ClaimsNode node("trn2.48xlarge");
  node.host.lnc(1);
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0", "--dra-partitions", "all"};
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  ASSERT_TRUE(node.wait_for([&] { return devices_of(node.slices()) > 128; })) << node.agent->log();
  const std::size_t begun = resident_kib(node.agent->pid());
  std::vector<FakeDraKubelet::Claim> claims;
  for (int core = 0; core < 64; ++core) {
    const std::string name = "claim-" + std::to_string(core);
    node.put("/api/v1/namespaces/team/pods", pod_of(name));
    const std::string device = "neuron-device-" + std::to_string(core / 8) + "-core-" + std::to_string(core % 8);
    const Json stored = node.put(kClaims, allocated(name, {device}));
    claims.push_back({"team", name, stored.at("metadata").at("uid").get<std::string>()});
  }
  {
    std::vector<std::jthread> pods;  // as after a start of the kubelet
    for (const auto& claim : claims) {
      pods.emplace_back(
          [&node, claim] { EXPECT_EQ(node.kubelet->prepare(kDriver, {claim}).claims[claim.uid].error, ""); });
    }
  }
  const std::size_t held = resident_kib(node.agent->pid());
  for (const auto& claim : claims) {
    EXPECT_EQ(node.kubelet->unprepare(kDriver, {claim}).claims[claim.uid].error, "");
  }
  constexpr std::size_t kMostKib = 24 << 10;
  const bool small = node.wait_for([&] { return resident_kib(node.agent->pid()) <= kMostKib; });
  const std::size_t ended = resident_kib(node.agent->pid());
  std::printf("resident: %zu KiB published, %zu KiB with 64 claims at once, %zu KiB afterwards\n", begun, held, ended);
  EXPECT_TRUE(small);
}

// The LNC that the slices show; 0 before there are any.
int published_lnc(ClaimsNode& node) {
  for (const Json& slice : node.slices()) {
    for (const Json& device : slice.at("spec").value("devices", Json::array())) {
      return device.at("attributes").at("lnc").at("int").get<int>();
    }
  }
  return 0;
}

TEST(ClaimsOnTrainium2, CoresKeepTheirNumbersUntilNothingIsHeld) {
  ClaimsNode node("trn2.48xlarge");
  node.host.lnc(2);
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  ASSERT_TRUE(node.wait_for([&] { return published_lnc(node) == 2; })) << node.agent->log();
  node.put("/api/v1/namespaces/team/pods", pod_of("train"));
  const Json stored = node.put(kClaims, allocated("train", {"neuron-device-4-core-1"}));
  const FakeDraKubelet::Claim claim{"team", "train", stored.at("metadata").at("uid").get<std::string>()};
  ASSERT_EQ(node.kubelet->prepare(kDriver, {claim}).claims.at(claim.uid).error, "") << node.agent->log();
  std::ofstream(node.host.path() + "/opt/aws/neuron/logical_nc_config") << "NEURON_LOGICAL_NC_CONFIG=1\n";
  const auto waits = [&] {
    const std::string line = "all cores keep their numbers until these claims end", log = node.agent->log();
    int count = 0;
    for (std::size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++count;
    return count;
  };
  EXPECT_TRUE(node.wait_for([&] { return waits() == 1; })) << node.agent->log();
  EXPECT_EQ(published_lnc(node), 2);
  // A container that starts now is given the LNC of its numbers: its runtime would read the file.
  node.put("/api/v1/namespaces/team/pods", pod_of("late"));
  const Json second = node.put(kClaims, allocated("late", {"neuron-device-5"}));
  const FakeDraKubelet::Claim late{"team", "late", second.at("metadata").at("uid").get<std::string>()};
  ASSERT_EQ(node.kubelet->prepare(kDriver, {late}).claims.at(late.uid).error, "") << node.agent->log();
  const auto cdi_file = [&](const FakeDraKubelet::Claim& one) {
    return text_of(node.cdi_dir() + "/k8s." + kDriver + "-claim_" + one.uid + ".json");
  };
  EXPECT_THAT(cdi_file(late), HasSubstr("\"NEURON_LOGICAL_NC_CONFIG=2\""));
  EXPECT_THAT(cdi_file(late), HasSubstr("\"NEURON_RT_VISIBLE_CORES=0-3\""));
  // So is one that starts again; its claim was prepared when the file said the same.
  EXPECT_TRUE(node.wait_for([&] {
    return cdi_file(claim).find("\"NEURON_LOGICAL_NC_CONFIG=2\"") != std::string::npos;
  })) << cdi_file(claim);
  EXPECT_EQ(node.kubelet->unprepare(kDriver, {late}).claims.at(late.uid).error, "");

  node.agent->signal(SIGKILL);
  ASSERT_EQ(node.agent->wait(kLong), -SIGKILL);
  const int before = node.kubelet->registrations();
  node.start_agent();
  ASSERT_TRUE(node.wait_for([&] { return node.kubelet->registrations() > before; })) << node.agent->log();
  EXPECT_TRUE(node.wait_for([&] { return waits() == 2; })) << node.agent->log();
  EXPECT_EQ(published_lnc(node), 2);
  EXPECT_EQ(node.kubelet->unprepare(kDriver, {claim}).claims.at(claim.uid).error, "");
  EXPECT_TRUE(node.wait_for([&] { return published_lnc(node) == 1; })) << node.agent->log();
}

TEST_F(Claims, OneModePerNode) {
  node.host.write();
  const auto plugin = plugin::InstanceLock::take(node.kubelet_dir + "/device-plugins");
  ASSERT_TRUE(plugin);
  node.start_agent();
  EXPECT_EQ(node.agent->wait(kLong), 3);
  EXPECT_THAT(node.agent->log(), HasSubstr("in device-plugin mode"));
}

}  // namespace
}  // namespace neuron::fakes
