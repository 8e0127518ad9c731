// The kubelet's directory under the agent: wiped, removed, recreated, seen through a mount, full of what a killed agent
// left there.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

#include "agent/base/fd.h"
#include "plugin/kubelet/socket_file.h"
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using testing::HasSubstr;

// A socket file on which nobody listens any more.
void leave_dead_socket(const std::string& path) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
}

std::vector<std::string> names_in(const std::string& directory, const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().starts_with(prefix)) names.push_back(entry.path().filename().string());
  }
  return names;
}

bool eventually(AgentProcess& agent, const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    static_cast<void>(agent.wait(std::chrono::milliseconds(5)));
  }
  return true;
}

// Kubelets before 1.33 delete every file but their checkpoint when they start.
TEST(Directory, AWipedOneStillKeepsASecondAgentOut) {
  Node node("trn1.2xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1));
  for (const auto& entry : std::filesystem::directory_iterator(node.kubelet->device_plugin_dir())) {
    if (entry.path() != node.kubelet->checkpoint_path() && !entry.is_socket()) std::filesystem::remove(entry.path());
  }
  AgentProcess second(node.arguments(), node.kubelet_dir + "/second.log");
  EXPECT_EQ(second.wait(kPatience), 3);
  EXPECT_THAT(second.log(), HasSubstr("another neuron-agent (pid " + std::to_string(node.agent->pid()) + ")"));
  EXPECT_EQ(node.kubelet->registrations(kNeuron), 1);
}

TEST(Directory, ARecreatedOneIsGoneOverToAndLockedAnew) {
  Node node("trn1.2xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1));
  node.kubelet.reset();
  std::filesystem::remove_all(node.kubelet_dir + "/device-plugins");
  node.start_kubelet();
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 1)) << node.agent->log();
  // It may register by the path before it has noticed that the directory is another one.
  ASSERT_TRUE(eventually(*node.agent, [&] {
    const auto holder = plugin::lock_holder(node.kubelet->device_plugin_dir());
    return holder && holder->pid == std::to_string(node.agent->pid());
  })) << node.agent->log();
  AgentProcess second(node.arguments(), node.kubelet_dir + "/second.log");
  EXPECT_EQ(second.wait(kPatience), 3);
  EXPECT_THAT(second.log(), HasSubstr("another neuron-agent (pid " + std::to_string(node.agent->pid()) + ")"));
}

// As in a pod: the directory is a bind mount, which keeps the one that was there for ever.
TEST(Directory, ADeadMountEndsTheAgentWithItsOwnExitCode) {
  if (std::system("unshare -m true 2>/dev/null") != 0) GTEST_SKIP() << "no mount namespace here: needs CAP_SYS_ADMIN";
  Node node("trn1.2xlarge");
  node.host.write();
  node.start_kubelet();
  const std::string real = node.kubelet_dir + "/device-plugins";
  const std::string inside = node.kubelet_dir + "/inside";  // what the container calls /var/lib/kubelet
  std::filesystem::create_directories(inside + "/device-plugins");
  std::filesystem::create_symlink(node.kubelet_dir + "/pod-resources", inside + "/pod-resources");
  std::vector<std::string> arguments = node.arguments();
  std::replace(arguments.begin(), arguments.end(), node.kubelet_dir, inside);
  const auto start_container = [&] {
    const std::vector<std::string> mounted = {"unshare",
                                              "-m",
                                              "sh",
                                              "-c",
                                              "mount --bind \"$0\" \"$1\" && shift && exec \"$@\"",
                                              real,
                                              inside + "/device-plugins"};
    node.agent.emplace(arguments, node.log_path(), mounted);
  };
  for (const std::string how : {"removed", "renamed"}) {
    SCOPED_TRACE(how);
    start_container();
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 1)) << node.agent->log();
    node.kubelet.reset();
    if (how == "removed") {
      std::filesystem::remove_all(real);
    } else {
      std::filesystem::rename(real, node.kubelet_dir + "/before");
    }
    node.start_kubelet();
    EXPECT_EQ(node.agent->wait(kPatience), 4) << node.agent->log();
    EXPECT_TRUE(node.wait_log("cause=" + how)) << node.agent->log();
  }
  start_container();  // as the kubelet does with a container that ended
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 1)) << node.agent->log();
}

TEST(Directory, SocketsOfAKilledAgentAreRemovedAndNoOthers) {
  Node node("trn1.2xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1));
  const std::string directory = node.kubelet->device_plugin_dir();
  const std::vector<std::string> left = names_in(directory, "neuron-agent-neuron-");
  ASSERT_EQ(left.size(), 1U);
  leave_dead_socket(directory + "/other.sock");
  const auto live = fakes::ClosingSocket::open(directory + "/neuron-agent-neuron-live-1.sock");
  ASSERT_TRUE(live);
  node.agent->signal(SIGKILL);
  ASSERT_TRUE(node.agent->wait(kPatience));
  ASSERT_TRUE(std::filesystem::exists(directory + "/" + left[0]));
  node.start_agent();
  ASSERT_TRUE(eventually(*node.agent, [&] { return node.kubelet->registrations(kNeuron) == 2; })) << node.agent->log();
  EXPECT_FALSE(std::filesystem::exists(directory + "/" + left[0]));
  EXPECT_TRUE(std::filesystem::exists(directory + "/other.sock"));
  EXPECT_TRUE(std::filesystem::exists(directory + "/neuron-agent-neuron-live-1.sock"));
  EXPECT_TRUE(node.wait_log("removed stale socket=" + left[0])) << node.agent->log();
}

}  // namespace
}  // namespace neuron::fakes
