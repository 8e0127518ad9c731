// Why a claim is not prepared, as a value: by it refusals are counted (docs/metrics.md#refusals).

#include <algorithm>
#include <future>

#include "test/unit/dra/shares_fixture.h"

namespace neuron::plugin::dra {
namespace {

class ForgetfulDriver final : public ClaimCalls {
 public:
  std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>&, const std::stop_token&) override {
    return {};
  }
  std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>&) override { return {}; }
};

class ClaimReasons;
struct Case {
  const char* name;
  RefusalReason reason;
  PrepareAnswer (*refuse)(ClaimReasons& node);
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << to_string(one.reason);
}

class ClaimReasons : public ClaimShares, public testing::WithParamInterface<Case> {
 public:
  static const std::vector<Case>& cases();

 private:
  void put_device(const std::string& name, const std::string& device, const json& configs = json::array()) {
    put_claim(name, {{"chips", device}}, configs);
  }
  [[nodiscard]] PrepareAnswer refuse_device(const std::string& device, const json& configs = json::array()) {
    put_device("a", device, configs);
    return prepare("a");
  }
  // A claim with two requests, used as `containers` say.
  [[nodiscard]] PrepareAnswer refuse_two(const std::vector<ContainerText>& containers, const json& configs = {}) {
    json claim = claim_json("a", "uid-a", {{"one", "neuron-device-1"}, {"two", "neuron-device-2"}},
                            configs.is_null() ? json::array() : configs);
    reserve_for(claim, "p", "pod-uid");
    api_.put(claim_path("a"), claim);
    put_pod("p", containers, "pod-uid");
    return prepare("a");
  }
  void fail_api(const std::string& path_part, int status) {
    api_.fail_next({.times = fakes::FakeApi::kAlways, .path_part = path_part, .status = status, .words = "no"});
  }
  // While a process keeps memory of a core; `then` runs when the claim waits for that.
  [[nodiscard]] PrepareAnswer refuse_waiting(const std::function<void()>& then) {
    put_device("a", "neuron-device-2");
    leftovers_.set(2, 1, 4096);
    auto answer = std::async(std::launch::async, [this] { return prepare("a"); });
    EXPECT_TRUE(leftovers_.wait_for_timers(3));
    then();
    return answer.get();
  }
  static json ultraserver(int nodes) {
    const json mode = {{"apiVersion", "neuron.aws.com/v1"}, {"kind", "UltraServerConfig"}, {"ultraserverMode", nodes}};
    return json::array({config_json("FromClaim", {}, mode)});
  }
  static json lnc(int value, const std::vector<std::string>& requests = {}) {
    return json::array({config_json("FromClaim", requests, neuron_config(value))});
  }
};

const std::vector<Case>& ClaimReasons::cases() {
  using enum RefusalReason;
  using Node = ClaimReasons;
  static const std::vector<Case> kAll = {
      {"BeforeTheFirstScan", not_scanned,
       [](Node& node) {
         node.node_ = nullptr;
         return node.refuse_device("neuron-device-2");
       }},
      {"UnreadLnc", not_scanned,
       [](Node& node) {
         node.change_node([](model::HostScan& host) {
           host.lnc.reset();
           host.lnc_is_unread = true;
         });
         return node.refuse_device("neuron-device-2");
       }},
      {"NoSuchClaim", no_claim, [](Node& node) { return node.prepare("nowhere"); }},
      {"RecreatedClaim", no_claim,
       [](Node& node) {
         node.put_device("a", "neuron-device-2");
         return node.agent_->claims.prepare({{"default", "a", "uid-of-before"}}, {}).at("uid-of-before");
       }},
      {"AnotherDriversAllocation", bad_allocation,
       [](Node& node) {
         node.put_claim("a", {{"chips", "gpu-0", "gpu.example.com"}});
         return node.prepare("a");
       }},
      {"AnotherNodesAllocation", bad_allocation,
       [](Node& node) {
         node.put_claim("a", {{"chips", "neuron-device-2", kDriver, "n2"}});
         return node.prepare("a");
       }},
      {"ADeviceTwice", bad_allocation,
       [](Node& node) {
         node.put_claim("a", {{"chips", "neuron-device-2"}, {"more", "neuron-group-0-3"}});
         return node.prepare("a");
       }},
      {"MissingDeviceWhileAScanForItHangs", not_scanned,
       [](Node& node) { return node.refuse_device("neuron-device-77"); }},
      {"MissingDevice", unknown_device,
       [](Node& node) {
         node.scanned_ = node.node_;
         return node.refuse_device("neuron-device-77");
       }},
      {"MissingGroup", unknown_device, [](Node& node) { return node.refuse_device("neuron-group-3-1"); }},
      {"NoNameOfThisDriver", unknown_device, [](Node& node) { return node.refuse_device("gpu-0"); }},
      {"UnhealthyDevice", unhealthy,
       [](Node& node) {
         node.make_core_ill(2, 0);
         return node.refuse_device("neuron-device-2");
       }},
      {"SharesOfUnhealthyCores", unhealthy,
       [](Node& node) {
         node.make_core_ill(2, 0);
         node.put_claim("a", {share("cores", 2, 4, "a")});
         return node.prepare("a");
       }},
      {"HeldDevice", held_by_claim,
       [](Node& node) {
         node.put_device("holder", "neuron-device-2-core-1");
         EXPECT_EQ(node.prepare("holder").error, "");
         return node.refuse_device("neuron-device-2");
       }},
      {"HeldShares", held_by_claim,
       [](Node& node) {
         EXPECT_EQ(node.put_and_prepare("holder", 2, 2), "");
         node.put_claim("a", {share("cores", 2, 3, "a")});
         return node.prepare("a");
       }},
      {"DeviceOfADevicePlugin", held_by_plugin,
       [](Node& node) {
         node.plugin_holders_ = {{"default/old/main", "aws.amazon.com/neuron", false, {{{2, {}}}, {}}}};
         return node.refuse_device("neuron-device-2");
       }},
      {"SharesOfADevicePlugin", held_by_plugin,
       [](Node& node) {
         node.plugin_holders_ = {{"default/old/main", "aws.amazon.com/neuron", false, {{{2, {}}}, {}}}};
         node.put_claim("a", {share("cores", 2, 1, "a")});
         return node.prepare("a");
       }},
      {"UnlistedHolders", holders_unknown,
       [](Node& node) {
         node.plugin_holders_ = PluginHoldWatch({}).known_holders();
         return node.refuse_device("neuron-device-2");
       }},
      {"MemoryInUse", in_use,
       [](Node& node) {
         return node.refuse_waiting([&node] { node.leftovers_.advance(node.clock_, MemoryGate::kTimeout); });
       }},
      {"AnotherLncOnTheDevice", lnc_clash,
       [](Node& node) {
         node.put_device("holder", "neuron-device-2-core-0");
         EXPECT_EQ(node.prepare("holder").error, "");
         return node.refuse_device("neuron-device-2-core-2", lnc(1));
       }},
      {"HalfACore", lnc_clash,
       [](Node& node) {
         node.change_node([](model::HostScan& host) { host.lnc->value = 1; });
         return node.refuse_device("neuron-device-2-core-1", lnc(2));
       }},
      {"MisspeltConfig", bad_config,
       [](Node& node) {
         const json misspelt = {{"apiVersion", "neuron.aws.com/v1"}, {"kind", "NeuronConfig"}, {"lnc", 1}};
         return node.refuse_device("neuron-device-2", json::array({config_json("FromClaim", {}, misspelt)}));
       }},
      {"LncWhereItIsFixed", bad_config,
       [](Node& node) {
         node.node_ = node_of("trn1.32xlarge");
         return node.refuse_device("neuron-device-2", lnc(1));
       }},
      {"NoCores", bad_config,
       [](Node& node) {
         node.put_claim("a", {share("cores", 2, 0, "a")});
         return node.prepare("a");
       }},
      {"NoUltraServer", ultraserver,
       [](Node& node) { return node.refuse_device("neuron-node", Node::ultraserver(4)); }},
      {"TwoLncsInOneContainer", request_clash,
       [](Node& node) {
         return node.refuse_two({{"main", {{"a", ""}}}}, lnc(1, {"two"}));
       }},
      {"ContainersThatUseARequestDifferently", request_clash,
       [](Node& node) {
         return node.refuse_two({{"first", {{"a", "one"}}}, {"second", {{"a", ""}}}});
       }},
      {"APreparedClaimWithOtherVariables", request_clash,
       [](Node& node) {
         node.put_device("shared", "neuron-device-1");
         EXPECT_EQ(node.prepare("shared").error, "");
         node.put_device("a", "neuron-device-0");
         node.put_pod("pod-a", {{"main", {{"shared", ""}, {"a", ""}}}}, "pod-uid-a");
         return node.prepare("a");
       }},
      {"ItsContainersOtherClaim", other_claim,
       [](Node& node) {
         node.put_device("lost", "neuron-device-77");
         node.put_device("a", "neuron-device-0");
         node.put_pod("pod-a", {{"main", {{"lost", ""}, {"a", ""}}}}, "pod-uid-a");
         return node.prepare_all({"lost", "a"}).at("uid-a");
       }},
      {"PodsThatMayNotBeRead", pods_unread,
       [](Node& node) {
         node.fail_api("/pods/", 403);
         return node.refuse_two({});
       }},
      {"PodsThatCannotBeReadNow", pods_unread,
       [](Node& node) {
         node.fail_api("/pods/", 503);
         return node.refuse_device("neuron-device-2");
       }},
      {"NoAnswerOfTheApiServer", api_server,
       [](Node& node) {
         node.fail_api("", 503);
         return node.refuse_device("neuron-device-2");
       }},
      {"AnAnswerThatIsTooLarge", api_server,
       [](Node& node) {
         node.put_claim("a", std::vector<ResultText>(129, {"chips", "neuron-device-2"}));
         return node.prepare("a");
       }},
      {"NoRole", forbidden,
       [](Node& node) {
         node.fail_api("/resourceclaims/", 403);
         return node.refuse_device("neuron-device-2");
       }},
      {"NoCdiDirectory", claim_files,
       [](Node& node) {
         write_text(node.cdi(), "in the way");
         return node.refuse_device("neuron-device-2");
       }},
      {"NoRecord", claim_files,
       [](Node& node) {
         std::filesystem::create_directories(node.directory() + "/claims.lock");
         return node.refuse_device("neuron-device-2");
       }},
      {"HangingFiles", claim_files,
       [](Node& node) {
         node.agent_->store.set_hanging(true);
         return node.refuse_device("neuron-device-2");
       }},
      {"CancelledCall", interrupted,
       [](Node& node) {
         std::stop_source stop;
         stop.request_stop();
         node.put_device("a", "neuron-device-2");
         return node.agent_->claims.prepare({ref("a")}, stop.get_token()).at("uid-a");
       }},
      {"ReleasedMeanwhile", interrupted,
       [](Node& node) {
         return node.refuse_waiting([&node] {
           EXPECT_EQ(node.unprepare("a"), "");
           node.leftovers_.set(2, 1, 0);
           node.leftovers_.advance(node.clock_, MemoryGate::kRetryEvery);
         });
       }},
      {"NoUid", bad_request,
       [](Node& node) {
         return node.agent_->claims.prepare({{"default", "a", "../x"}}, {}).at("../x");
       }},
      {"NoName", bad_request,
       [](Node& node) {
         return dra::prepare_all(node.agent_->claims, {{"default", "A", "u"}}, {})->at("u");
       }},
      {"NoAnswer", other,
       [](Node&) {
         ForgetfulDriver driver;
         return dra::prepare_all(driver, {{"default", "a", "u"}}, {})->at("u");
       }},
  };
  return kAll;
}

TEST_P(ClaimReasons, IsAValue) {
  const PrepareAnswer answer = GetParam().refuse(*this);
  EXPECT_EQ(answer.reason, to_string(GetParam().reason)) << answer.error;
  EXPECT_NE(answer.error, "");
}

INSTANTIATE_TEST_SUITE_P(Each, ClaimReasons, testing::ValuesIn(ClaimReasons::cases()),
                         [](const auto& one) { return one.param.name; });

TEST(RefusalReasons, EachHasItsWordAndACase) {
  EXPECT_EQ(to_string(RefusalReason::not_scanned), "not_scanned");
  EXPECT_EQ(to_string(RefusalReason::held_by_claim), "held_by_claim");
  EXPECT_EQ(to_string(RefusalReason::lnc_clash), "lnc_clash");
  EXPECT_EQ(to_string(RefusalReason::request_clash), "request_clash");
  EXPECT_EQ(to_string(RefusalReason::interrupted), "interrupted");
  EXPECT_EQ(to_string(RefusalReason::other), kRefusalReasons.back());
  for (const std::string_view reason : kRefusalReasons) {
    EXPECT_TRUE(std::ranges::any_of(ClaimReasons::cases(), [&](const Case& one) {
      return to_string(one.reason) == reason;
    })) << reason;
  }
}

}  // namespace
}  // namespace neuron::plugin::dra
