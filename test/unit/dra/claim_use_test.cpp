#include "plugin/dra/claim/claim_grant.h"

#include <gtest/gtest.h>

#include "plugin/dra/claim/claim_plan.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {
namespace {

class ClaimUseTest : public testing::Test {
 protected:
  [[nodiscard]] PlannedRequest request(const std::string& name, const std::string& device) const {
    return {name, *hardware_of(*node_, device), false, {}};
  }
  [[nodiscard]] Result<std::map<std::string, Environment>> environments(const std::string& claim = "a") const {
    return environments_of({*node_, options_}, claim, use_);
  }
  void container(const std::string& name, std::map<std::string, UsedRequests> claims) {
    use_.containers.push_back({"p/" + name, std::move(claims)});
  }
  [[nodiscard]] static Environment cores(const std::string& value) { return {{"NEURON_RT_VISIBLE_CORES", value}}; }
  [[nodiscard]] std::string error() const {
    const auto found = environments();
    return found ? "" : found.error().message;
  }

  grant::NodeUnitsPtr node_ = node_of("trn1.32xlarge");  // two cores per device
  grant::GrantOptions options_;
  ClaimUse use_;
};

TEST_F(ClaimUseTest, AloneARequestHasItsOwnValue) {
  use_.claims["a"] = {{request("r", "neuron-device-1"), request("s", "neuron-device-2")}, {}};
  container("one", {{"a", {"r"}}});
  container("two", {{"a", {"s"}}});
  EXPECT_EQ(environments()->at("r"), cores("0-1"));
  EXPECT_EQ(environments()->at("s"), cores("0-1"));
}

// What a container uses together is one value, on every one of the requests.
TEST_F(ClaimUseTest, Pain25RequestsThatOneContainerUsesCarryTheUnion) {
  use_.claims["a"] = {{request("r", "neuron-device-1"), request("s", "neuron-device-2-core-1")}, {}};
  container("one", {{"a", {}}});
  EXPECT_EQ(environments()->at("r"), cores("0-1,3"));
  EXPECT_EQ(environments()->at("s"), cores("0-1,3"));
  container("two", {{"a", {"r", "s"}}});  // the same set, named
  EXPECT_EQ(environments()->at("r"), cores("0-1,3"));
}

TEST_F(ClaimUseTest, ClaimsOfOneContainerCarryTheUnionToo) {
  use_.claims["a"] = {{request("r", "neuron-device-1")}, {}};
  use_.claims["b"] = {{request("r", "neuron-device-0")}, {}};
  container("one", {{"a", {}}, {"b", {}}, {"of-another-driver", {}}});
  EXPECT_EQ(environments("a")->at("r"), cores("0-3"));
  EXPECT_EQ(environments("b")->at("r"), cores("0-3"));
}

TEST_F(ClaimUseTest, WhereNoValueIsRightItIsRefusedByName) {
  use_.claims["a"] = {{request("r", "neuron-device-1"), request("s", "neuron-device-2")}, {}};
  container("one", {{"a", {"r"}}});
  container("two", {{"a", {"r", "s"}}});
  EXPECT_EQ(error(),
            "the request \"r\" is used by p/one, which needs NEURON_RT_VISIBLE_CORES=0-1, and by p/two, which needs "
            "NEURON_RT_VISIBLE_CORES=0-3, since they use different requests beside it; containers must share all of "
            "their Neuron requests or none");
}

// Only values matter: an interface beside the devices changes none.
TEST_F(ClaimUseTest, InterfacesBesideTheDevicesDoNotMatter) {
  use_.claims["a"] = {{request("r", "neuron-device-1"), request("nics", "efa-" + node_->efa(0).name)}, {}};
  container("one", {{"a", {"r"}}});
  container("two", {{"a", {"r", "nics"}}});
  const auto found = environments();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (std::map<std::string, Environment>{{"r", cores("0-1")}}));
}

TEST_F(ClaimUseTest, AClaimThatIsPreparedForOtherUseIsNotJoined) {
  use_.claims["a"] = {{request("r", "neuron-device-1")}, {}};
  use_.claims["shared"] = {{request("r", "neuron-device-0")}, std::map<std::string, Environment>{{"r", cores("0-1")}}};
  container("one", {{"a", {}}, {"shared", {}}});
  EXPECT_THAT(error(), testing::HasSubstr("that claim is already prepared, with NEURON_RT_VISIBLE_CORES=0-1"));
  use_.claims["shared"].prepared = std::map<std::string, Environment>{{"r", cores("0-3")}};
  EXPECT_EQ(environments()->at("r"), cores("0-3"));
}

TEST_F(ClaimUseTest, AClaimWhosePodCannotBeReadIsServedWhenOneRequestComputes) {
  use_.unread = "pods \"p\" is forbidden";
  use_.claims["a"] = {{request("r", "neuron-device-1"), request("nics", "efa-" + node_->efa(0).name)}, {}};
  EXPECT_EQ(environments()->at("r"), cores("0-1"));
  use_.claims["b"] = {{request("r", "neuron-device-2")}, {}};  // of the same pod
  EXPECT_THAT(error(), testing::HasSubstr("could not be read: pods \"p\" is forbidden; or put all Neuron devices"));
  use_.claims["b"].prepared = std::map<std::string, Environment>{{"r", cores("0-1")}};  // a container may use both
  EXPECT_THAT(error(), testing::HasSubstr("could not be read"));
  use_.claims["b"] = {{request("r", "efa-" + node_->efa(0).name)}, std::map<std::string, Environment>()};
  EXPECT_EQ(environments()->at("r"), cores("0-1"));
  use_.claims.erase("b");
  use_.claims["a"].requests.push_back(request("s", "neuron-device-2"));
  EXPECT_NE(error(), "");
}

TEST_F(ClaimUseTest, ARequestThatNobodyUsesIsPreparedAllTheSame) {
  use_.claims["a"] = {{request("r", "neuron-device-1"), request("s", "neuron-device-2")}, {}};
  EXPECT_EQ(environments()->at("s"), cores("0-1"));
}

}  // namespace
}  // namespace neuron::plugin::dra
