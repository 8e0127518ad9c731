// `neuron-agent check` on nodes that serve claims, or have served them: files, and sockets that somebody listens on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/base/fd.h"
#include "plugin/kubelet/socket_file.h"
#include "test/unit/agent/checked_node.h"

namespace neuron::agent::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A socket below the kubelet's directory of which the server is as long there as this.
class Listener {
 public:
  Listener(const CheckedNode& node, const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::string full = node.kubelet + '/' + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    full.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd_.get(), 4), 0);
  }

 private:
  Fd fd_;
};

constexpr const char* kPackages = "Package: kubelet\nStatus: install ok installed\nVersion: 1.36.3-1.1\n\n";

// Without EFA, so that nothing is said of libfabric.
struct CheckClaims : testing::Test {
  CheckedNode node{"trn1.2xlarge"};

  void SetUp() override {
    node.host.file("var/lib/dpkg/status", kPackages)
        .file("var/run/cdi/k8s.neuron.aws.com-claim_1-a.json", "{}")
        .write();
    std::filesystem::create_directories(node.kubelet + "/plugins_registry");
    node.touch("config.yaml", "kind: KubeletConfiguration\n");
    node.touch("plugins/neuron.aws.com/claims.json", R"({"checksum":"0","claims":[{"uid":"1-a"}]})");
  }
};

TEST_F(CheckClaims, ADriverThatRunsIsSound) {
  const Listener driver(node, "plugins/neuron.aws.com/dra-1-2.sock");
  const Listener registration(node, "plugins_registry/neuron.aws.com-1-2-reg.sock");
  EXPECT_THAT(node.codes(), IsEmpty());
}

TEST_F(CheckClaims, ADevicePluginBesideItIsNot) {
  const Listener driver(node, "plugins/neuron.aws.com/dra-1-2.sock");
  const Listener plugin(node, "device-plugins/neuron-agent-neuron-ab12-0.sock");
  EXPECT_THAT(node.codes(), ElementsAre("both_modes"));
}

TEST_F(CheckClaims, ADriverThatWasKilledLeavesSocketsAndPods) {
  { const Listener driver(node, "plugins/neuron.aws.com/dra-1-2.sock"); }
  EXPECT_THAT(node.codes(), ElementsAre("driver_gone", "dead_driver_sockets"));
}

TEST_F(CheckClaims, AnotherDriverIsLookedAtWhenItIsNamed) {
  Options options = node.options();
  options.output = ReportForm::json;
  options.dra.pool.driver = "chips.example.com";
  const auto codes_of = [&] {
    std::vector<std::string> codes;
    const auto document = nlohmann::json::parse(check_node(options).output);
    for (const auto& finding : document.at("findings")) codes.push_back(finding.at("code"));
    return codes;
  };
  EXPECT_THAT(codes_of(), IsEmpty()) << "it has never run";
  options.intended_mode = Mode::dra;
  std::filesystem::remove_all(node.kubelet + "/plugins_registry");
  EXPECT_THAT(codes_of(), ElementsAre("plugins_registry_missing"));
}

TEST_F(CheckClaims, AnAgentOfTheOtherModeIsNamedByItsLock) {
  const Listener driver(node, "plugins/neuron.aws.com/dra-1-2.sock");
  Options options = node.options();
  const auto lock = plugin::InstanceLock::take(node.kubelet + "/device-plugins");
  ASSERT_TRUE(lock);
  EXPECT_EQ(check_node(options).verdict, Verdict::good) << "no mode is meant";
  options.intended_mode = Mode::dra;
  EXPECT_THAT(check_node(options).output, ::testing::HasSubstr("locked by pid " + std::to_string(::getpid())));
  options.intended_mode = Mode::device_plugin;
  EXPECT_EQ(check_node(options).verdict, Verdict::good);
}

TEST_F(CheckClaims, CdiFilesAreLookedForWhereTheAgentWritesThem) {
  const Listener driver(node, "plugins/neuron.aws.com/dra-1-2.sock");
  Options options = node.options();
  options.intended_mode = Mode::dra;
  options.claims_cdi_dir = node.kubelet + "/cdi";
  EXPECT_THAT(check_node(options).output, ::testing::HasSubstr(options.claims_cdi_dir));
  node.touch("cdi/k8s.neuron.aws.com-claim_2-b.json");
  const std::string output = check_node(options).output;
  EXPECT_THAT(output, ::testing::HasSubstr("k8s.neuron.aws.com-claim_2-b.json"));
  EXPECT_THAT(output, ::testing::Not(::testing::HasSubstr("1-a"))) << "which is in var/run/cdi";
}

TEST_F(CheckClaims, OnANodeOfTheOtherKindNothingIsLookedAt) {
  std::filesystem::remove_all(node.kubelet + "/plugins");
  std::filesystem::remove_all(node.kubelet + "/plugins_registry");
  EXPECT_THAT(node.codes(), IsEmpty());
}

}  // namespace
}  // namespace neuron::agent::test
