#include "plugin/kubelet/socket_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>

#include "agent/base/fd.h"

namespace neuron::plugin {
namespace {

using testing::ElementsAre;

struct SocketFiles : testing::Test {
  std::string path = "/tmp/socketfileXXXXXX";  // short enough for a socket
  void SetUp() override { ASSERT_NE(mkdtemp(path.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(path); }

  // Bound; listening while the descriptor is open, if asked for.
  Fd bind(const std::string& name, bool listening) const {
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (path + "/" + name).copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_TRUE(!listening || ::listen(socket.get(), 1) == 0);
    return socket;
  }
};

TEST(SocketNames, TellWhoseTheyAre) {
  const std::string own = endpoint_name(model::Resource::efa, "1a-ffee", 3);
  EXPECT_EQ(own, "neuron-agent-efa-1a-ffee-3.sock");
  EXPECT_TRUE(is_agent_socket(own));
  EXPECT_TRUE(is_socket_of(own, "1a-ffee"));
  EXPECT_FALSE(is_foreign_socket(own, "1a-ffee"));
  EXPECT_TRUE(is_foreign_socket(own, "2b-ffee")) << "a second agent";
  EXPECT_FALSE(is_foreign_socket("kubelet.sock", "1a-ffee"));
  EXPECT_TRUE(is_foreign_socket("aws-efa.sock", "1a-ffee"));
  EXPECT_FALSE(is_foreign_socket("kubelet_internal_checkpoint", "1a-ffee"));
  EXPECT_FALSE(is_agent_socket("neuron-agent.lock"));
}

TEST_F(SocketFiles, AreDeadWhenNobodyListens) {
  const Fd live = bind("live.sock", true);
  bind("dead.sock", false).reset();
  std::ofstream(path + "/file.sock") << "";
  EXPECT_EQ(socket_state(path + "/live.sock"), SocketState::listening);
  EXPECT_EQ(socket_state(path + "/live.sock"), SocketState::listening);
  EXPECT_EQ(socket_state(path + "/live.sock"), SocketState::listening) << "a full queue has a listener";
  EXPECT_EQ(socket_state(path + "/dead.sock"), SocketState::dead);
  EXPECT_EQ(socket_state(path + "/none.sock"), SocketState::missing);
  EXPECT_EQ(socket_state(path + "/file.sock"), SocketState::unknown);
  EXPECT_EQ(socket_state(path + "/" + std::string(200, 'x')), SocketState::unknown);
  EXPECT_THAT(sockets_in(path), ElementsAre("dead.sock", "live.sock"));
  EXPECT_TRUE(sockets_in(path + "/none").empty());
}

TEST_F(SocketFiles, OnlyDeadOnesOfAgentsAreRemoved) {
  const Fd live = bind("neuron-agent-neuron-1-2-1.sock", true);
  bind("neuron-agent-neuron-3-4-1.sock", false).reset();
  bind("aws-efa.sock", false).reset();
  std::ofstream(path + "/neuron-agent-neuron-5-6-1.sock") << "no socket";
  std::filesystem::create_symlink("aws-efa.sock", path + "/neuron-agent-efa-7-8-1.sock");
  EXPECT_THAT(remove_dead_agent_sockets(path), ElementsAre("neuron-agent-neuron-3-4-1.sock"));
  EXPECT_THAT(sockets_in(path), ElementsAre("aws-efa.sock", "neuron-agent-neuron-1-2-1.sock"));
  EXPECT_TRUE(std::filesystem::is_symlink(path + "/neuron-agent-efa-7-8-1.sock"));
}

}  // namespace
}  // namespace neuron::plugin
