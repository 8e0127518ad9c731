#include "agent/host/attributes.h"
#include "agent/host/last_seen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/host/temp_tree.h"

namespace neuron::host {
namespace {

using model::UltraServer;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class UltraServerFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) { tree_.write("sys/class/neuron_device/" + name, text); }
  std::optional<UltraServer> read() {
    problems_.clear();
    is_unread_ = false;
    return read_ultraserver(tree_.root(), last_, problems_, is_unread_);
  }

  TempTree tree_;
  LastTexts last_;
  bool is_unread_ = false;
  std::vector<model::ReadProblem> problems_;
};

TEST_F(UltraServerFiles, OneThatCannotBeReadCountsAsItWasReadLast) {
  const std::map<std::string, std::string> files = {{"ultraserver_mode", "1,2,4\n"},
                                                    {"node_cnt", "4\n"},
                                                    {"reservation_id", "8f10b6e35a7c92d4\n"},
                                                    {"node_id", "3\n"},
                                                    {"node_id_2", "1\n"},
                                                    {"server_id_2", "4d2a71c09be3f652\n"},
                                                    {"server_id_4", "8f10b6e35a7c92d4\n"},
                                                    {"node_id_4", "3\n"}};
  for (const auto& [name, text] : files) write(name, text);
  const auto before = read();
  ASSERT_TRUE(before);
  ASSERT_THAT(before->memberships, SizeIs(3));
  for (const auto& [name, text] : files) {
    const std::string path = "sys/class/neuron_device/" + name;
    tree_.remove(path);
    tree_.folder(path);  // fails as no absence does
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read(), before) << name;
    ASSERT_THAT(problems_, SizeIs(1)) << name;
    EXPECT_EQ(problems_[0].path, path);
    EXPECT_THAT(problems_[0].detail, testing::EndsWith("; what was read last stands"));
    EXPECT_FALSE(is_unread_);
    LastTexts none;
    EXPECT_NE(read_ultraserver(tree_.root(), none, problems_, is_unread_), before) << "it was never read: " << name;
    EXPECT_TRUE(is_unread_) << name;
    write(name, text);
    EXPECT_EQ(read(), before) << name;
    EXPECT_THAT(problems_, IsEmpty());
  }
  tree_.remove("sys/class/neuron_device/node_id_2");
  EXPECT_THAT(read()->memberships, SizeIs(2)) << "a file that is gone has no value";
  EXPECT_EQ(last_.at("sys/class/neuron_device/node_id_2"), std::nullopt);
}

TEST_F(UltraServerFiles, OfTrn2uAreTwoMemberships) {
  write("ultraserver_mode", "4,1,2\n");
  write("server_id_2", "4D2A71C09BE3F652\n");
  write("node_id_2", "1\n");
  write("server_id_4", "8f10b6e35a7c92d4\n");
  write("node_id_4", "3\n");
  const auto found = read();
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->busy);
  EXPECT_THAT(found->modes, ElementsAre(1, 2, 4));
  EXPECT_THAT(found->memberships, ElementsAre(UltraServer::Membership{2, "4d2a71c09be3f652", 1},
                                              UltraServer::Membership{4, "8f10b6e35a7c92d4", 3}));
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(UltraServerFiles, OfTrn3HaveAReservation) {
  write("ultraserver_mode", "1\n");
  write("reservation_id", "8f10b6e35a7c92d4\n");
  write("node_id", "7\n");
  EXPECT_THAT(read()->memberships, ElementsAre(UltraServer::Membership{0, "8f10b6e35a7c92d4", 7}));
}

TEST_F(UltraServerFiles, APartitionSaysOfHowManyNodesItIs) {
  write("ultraserver_mode", "1,3,4\n");
  write("reservation_id", "8f10b6e35a7c92d4\n");
  write("node_id", "3\n");
  write("node_cnt", "4\n");
  EXPECT_THAT(read()->memberships, ElementsAre(UltraServer::Membership{4, "8f10b6e35a7c92d4", 3}));
  EXPECT_EQ(read()->partition_nodes, 4);
  write("node_cnt", "1\n");
  EXPECT_THAT(read()->memberships, IsEmpty()) << "linked with no other";
  write("node_cnt", "busy\n");
  EXPECT_EQ(read()->partition_nodes, std::nullopt);
  EXPECT_THAT(problems_, IsEmpty());
  write("node_cnt", "four\n");
  EXPECT_THAT(read()->memberships, SizeIs(1)) << "of how many is not known";
  EXPECT_THAT(problems_, SizeIs(1));
}

TEST_F(UltraServerFiles, ANodeByItselfIsInNone) {
  EXPECT_FALSE(read()) << "an older driver has no such files";
  write("ultraserver_mode", "\n");
  write("server_id_2", "0000000000000000\n");
  write("node_id_2", "-1\n");
  write("server_id_4", "invalid\n");
  write("node_id_4", "invalid\n");
  ASSERT_TRUE(read());
  EXPECT_THAT(read()->modes, IsEmpty());
  EXPECT_THAT(read()->memberships, IsEmpty());
  EXPECT_THAT(problems_, IsEmpty());
  write("server_id_2", "4d2a71c09be3f652\n");
  EXPECT_THAT(read()->memberships, IsEmpty()) << "without its own number a node is no member";
}

TEST_F(UltraServerFiles, AnElectionIsNoProblem) {
  for (const char* name : {"ultraserver_mode", "node_id_2", "server_id_2"}) write(name, "busy\n");
  ASSERT_TRUE(read());
  EXPECT_TRUE(read()->busy);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(UltraServerFiles, GarbageCostsItsOwnFact) {
  write("ultraserver_mode", "1,\x1b[2J,7\n");
  write("server_id_2", std::string(4096, 'f'));
  write("node_id_2", "0\n");
  write("server_id_4", "8f10b6e35a7c92d4\n");
  write("node_id_4", "99999999999999999999\n");
  const auto found = read();
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, UltraServer{});
  EXPECT_THAT(problems_, SizeIs(3));
  for (const auto& problem : problems_) EXPECT_EQ(problem.detail.find('\x1b'), std::string::npos);
  write("server_id_2", "4d2a71c09be3f652\n");
  EXPECT_THAT(read()->memberships, SizeIs(1));
  tree_.remove("sys/class/neuron_device/ultraserver_mode");
  tree_.folder("sys/class/neuron_device/ultraserver_mode");
  last_.clear();
  EXPECT_FALSE(read()) << "it was never read";
  EXPECT_THAT(problems_, SizeIs(1));
}

}  // namespace
}  // namespace neuron::host
