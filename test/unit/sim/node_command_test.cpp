#include "tools/neuron-sim/commands.h"

#include <gmock/gmock.h>

#include <sstream>

#include "test/fakes/fake_api_server.h"
#include "test/unit/host/temp_tree.h"
#include "test/unit/sim/files.h"
#include "tools/neuron-sim/faults.h"

namespace neuron::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::is_there;
using testing::text_of;
using namespace std::chrono_literals;

// `neuron-sim node DIR --keep --type-from-node NAME` in a pod whose API server is the fake one. NAME decides what that
// answers (fake_api_server.py).
class TypeFromNode : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(server_.is_up()) << "python3 or openssl is missing"; }

  int run(const std::string& node, const std::string& type = "") {
    NodeCommand command;
    command.directory = host_;
    command.plan.instance_type = type;
    command.type_from_node = node;
    command.keep = true;
    command.places = places_;
    command.label_budget = budget_;
    command.machine = machine_;
    command.beside_hardware = beside_hardware_;
    std::ostringstream out;
    std::ostringstream errors;
    const int code = run_node_command(command, out, errors);
    out_ = out.str();
    errors_ = errors.str();
    return code;
  }
  [[nodiscard]] std::string type() const { return text_of(host_ + "/sys/class/dmi/id/product_name"); }

  fakes::FakeApiServer server_;
  kube::InClusterPlaces places_ = server_.places();
  std::chrono::milliseconds budget_ = 30s;
  host::TempTree tree_{host::TempTree::Place::memory};
  std::string host_ = tree_.at("host");
  std::string machine_ = server_.dir();  // without hardware
  bool beside_hardware_ = false;
  std::string out_;
  std::string errors_;
};

TEST_F(TypeFromNode, TheLabelGoesBeforeTheVariable) {
  EXPECT_EQ(run("trn2", "inf2.xlarge"), 0);
  EXPECT_EQ(type(), "trn2.3xlarge\n");
  EXPECT_THAT(out_, HasSubstr("wrote trn2.3xlarge"));
}

TEST_F(TypeFromNode, WithoutLabelTheVariableAndWithoutThatTheDefault) {
  EXPECT_EQ(run("plain", "inf2.xlarge"), 0);
  EXPECT_EQ(type(), "inf2.xlarge\n");
  EXPECT_EQ(errors_, "");
  EXPECT_EQ(run("plain"), 0);
  EXPECT_EQ(type(), "trn1.32xlarge\n");
}

TEST_F(TypeFromNode, WhoMayNotAskGetsTheVariableAndIsTold) {
  EXPECT_EQ(run("forbidden", "inf2.xlarge"), 0);
  EXPECT_EQ(type(), "inf2.xlarge\n");
  EXPECT_THAT(errors_, AllOf(HasSubstr("label neuron-agent/simulate of node forbidden cannot be read"),
                             HasSubstr("so it is inf2.xlarge"), HasSubstr("needs a role")));
  EXPECT_EQ(run("forbidden", "trn1.2xlarge"), 0) << "nothing to wait for: the variable counts";
  EXPECT_EQ(type(), "trn1.2xlarge\n");
  places_.token_file = server_.dir() + "/none";
  EXPECT_EQ(run("trn2", "inf2.xlarge"), 0);
  EXPECT_THAT(errors_, HasSubstr("projected volume"));
  places_.host = "";
  EXPECT_EQ(run("trn2", "inf2.xlarge"), 0);
  EXPECT_THAT(errors_, HasSubstr("not running in a pod"));
}

TEST_F(TypeFromNode, ANameThatNoNodeHasIsAWrongFlagAndNotAReasonForTheDefault) {
  for (const char* name : {"../x", "$(NODE_NAME)", "Node", "a..b"}) {
    EXPECT_EQ(run(name, "inf2.xlarge"), 2) << name;
    EXPECT_THAT(errors_,
                AllOf(HasSubstr("neuron-sim: --type-from-node: \"" + std::string(name) + "\" is not a node name"),
                      HasSubstr("kubectl get nodes")));
    EXPECT_FALSE(is_there(host_)) << name;
  }
}

TEST_F(TypeFromNode, ANodeWithHardwareOfItsOwnIsRefusedUnlessToldOtherwise) {
  ASSERT_EQ(run("plain"), 0);
  const std::string machine = tree_.at("machine");
  for (const auto& [type, words] : {std::pair("trn1.32xlarge", "16 Neuron devices and 8 EFA interfaces"),
                                    std::pair("p5.48xlarge", "0 Neuron devices and 32 EFA interfaces")}) {
    NodeCommand real;
    real.directory = machine;
    real.plan.instance_type = type;
    std::ostringstream ignored;
    ASSERT_EQ(run_node_command(real, ignored, ignored), 0) << ignored.str();
    machine_ = machine;
    beside_hardware_ = false;
    EXPECT_EQ(run("plain", "inf2.xlarge"), 1) << type;
    EXPECT_THAT(errors_, AllOf(HasSubstr(words), HasSubstr("--beside-hardware")));
    EXPECT_EQ(this->type(), "trn1.32xlarge\n") << "what is there stays";
  }
  beside_hardware_ = true;
  EXPECT_EQ(run("plain", "inf2.xlarge"), 0);
  EXPECT_EQ(type(), "inf2.xlarge\n");
}

TEST_F(TypeFromNode, AnApiServerThatIsAwayChangesNothingThatIsThere) {
  ASSERT_EQ(run("trn2"), 0);
  ASSERT_TRUE(apply_fault(host_, "neuron0", {"sram_ecc_uncorrected=1"}));
  budget_ = 600ms;
  for (const char* node : {"busy", "silent"}) {
    EXPECT_EQ(run(node, "inf2.xlarge"), 0);
    EXPECT_EQ(type(), "trn2.3xlarge\n");
    EXPECT_THAT(errors_, HasSubstr("stays"));
  }
  EXPECT_EQ(text_of(host_ + "/sys/class/neuron_device/neuron0/stats/hardware/sram_ecc_uncorrected"), "1\n");
}

TEST_F(TypeFromNode, AnApiServerThatIsAwayOnANewNode) {
  budget_ = 600ms;
  EXPECT_EQ(run("busy", "inf2.xlarge"), 0);
  EXPECT_EQ(type(), "inf2.xlarge\n");
  EXPECT_THAT(errors_, HasSubstr("so it is inf2.xlarge"));
}

// Three refusals, a quarter of a second apart.
TEST_F(TypeFromNode, AnApiServerThatComesLateIsWaitedFor) {
  EXPECT_EQ(run("late", "inf2.xlarge"), 0);
  EXPECT_EQ(type(), "trn2.3xlarge\n");
  EXPECT_EQ(errors_, "");
}

TEST_F(TypeFromNode, NobodyIsWaitedForBeyondTheBudget) {
  for (const char* node : {"busy", "silent", "slow"}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = ask_type_label(places_, node, 600ms);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << node;
    EXPECT_TRUE(answer.may_work_later) << node;
    EXPECT_FALSE(answer.type) << node;
  }
}

TEST_F(TypeFromNode, AWrongLabelIsNamed) {
  EXPECT_EQ(run("typo", "inf2.xlarge"), 2);
  EXPECT_THAT(errors_, AllOf(HasSubstr("the label neuron-agent/simulate of node typo"),
                             HasSubstr("did you mean trn1.32xlarge")));
  EXPECT_FALSE(is_there(host_));
}

TEST_F(TypeFromNode, AWrongVariableIsNotCalledALabel) {
  EXPECT_EQ(run("plain", "nonsense"), 2);
  EXPECT_THAT(errors_, Not(HasSubstr("label")));
}

TEST_F(TypeFromNode, TheSameTypeAgainKeepsFaultsAndAnotherDoesNot) {
  ASSERT_EQ(run("trn2"), 0);
  ASSERT_TRUE(apply_fault(host_, "neuron0", {"vanish"}));
  EXPECT_EQ(run("trn2"), 0);
  EXPECT_THAT(out_, HasSubstr("kept trn2.3xlarge"));
  EXPECT_FALSE(is_there(host_ + "/dev/neuron0"));
  EXPECT_EQ(run("plain", "inf2.xlarge"), 0);
  EXPECT_THAT(out_, HasSubstr("wrote inf2.xlarge"));
  EXPECT_TRUE(is_there(host_ + "/dev/neuron0"));
}

}  // namespace
}  // namespace neuron::sim
