#include "tools/neuron-sim/kubelet/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace neuron::sim {
namespace {

using ::testing::HasSubstr;

Command parsed(std::string_view line) {
  const auto command = parse_command(line);
  EXPECT_TRUE(command.has_value() && command->has_value()) << line;
  return command && *command ? **command : Command{};
}

TEST(ScriptTest, APodWithShortNames) {
  const Command command = parsed("  pod train neuron=4 efa=8 neuroncore=0 example.com/x=1 ");
  EXPECT_EQ(command.verb, Verb::pod);
  EXPECT_EQ(command.pod.name, "train");
  EXPECT_EQ(command.pod.ns, "default");
  ASSERT_EQ(command.pod.containers.size(), 1U);
  EXPECT_EQ(command.pod.containers[0].name, "main");
  EXPECT_EQ(command.pod.containers[0].requests, (std::map<std::string, int>{{"aws.amazon.com/neuron", 4},
                                                                            {"aws.amazon.com/neuroncore", 0},
                                                                            {"example.com/x", 1},
                                                                            {"vpc.amazonaws.com/efa", 8}}));
}

TEST(ScriptTest, APodWithContainers) {
  const Command command = parsed("pod team/train init/setup:neuron=1 main:neuron=2 efa=1 log:");
  EXPECT_EQ(command.pod.ns, "team");
  ASSERT_EQ(command.pod.containers.size(), 3U);
  EXPECT_EQ(command.pod.containers[0].kind, ContainerKind::init);
  EXPECT_EQ(command.pod.containers[0].name, "setup");
  EXPECT_EQ(command.pod.containers[1].requests.size(), 2U);
  EXPECT_EQ(command.pod.containers[2].name, "log");
  EXPECT_TRUE(command.pod.containers[2].requests.empty());
  EXPECT_EQ(parsed("pod p sidecar/x:").pod.containers[0].kind, ContainerKind::restartable_init);
}

TEST(ScriptTest, APodWithClaims) {
  const Command command = parsed("pod train chips@neuron-device-3,efa-rdmap16s25 efa=1 log:chips@neuron-device-3");
  ASSERT_EQ(command.pod.containers.size(), 2U);
  EXPECT_EQ(command.pod.containers[0].name, "main");
  EXPECT_EQ(command.pod.containers[0].claims, (Claims{{"chips", {"neuron-device-3", "efa-rdmap16s25"}}}));
  EXPECT_EQ(command.pod.containers[0].requests.size(), 1U);
  EXPECT_EQ(command.pod.containers[1].claims, (Claims{{"chips", {"neuron-device-3"}}}));
}

TEST(ScriptTest, TheOtherCommands) {
  EXPECT_EQ(parsed("delete team/train").pod.ns, "team");
  EXPECT_EQ(parsed("wait neuron=15 efa=8").counts,
            (std::map<std::string, int>{{"aws.amazon.com/neuron", 15}, {"vpc.amazonaws.com/efa", 8}}));
  EXPECT_EQ(parsed("echo   two  words").text, "two  words");
  EXPECT_EQ(parsed("advance 5m").duration, std::chrono::minutes(5));
  EXPECT_EQ(parsed("start a main").pod.containers[0].name, "main");
  EXPECT_EQ(parsed("restart").verb, Verb::restart);
  EXPECT_EQ(parsed("quit").verb, Verb::quit);
}

TEST(ScriptTest, EmptyLinesAndCommentsAreNothing) {
  for (const std::string line : {"", "   ", "# pod train", "\t"}) {
    const auto command = parse_command(line);
    ASSERT_TRUE(command.has_value());
    EXPECT_FALSE(command->has_value());
  }
}

TEST(ScriptTest, WrongLinesSayWhatIsWrong) {
  const std::pair<std::string, std::string> lines[] = {
      {"dance", "unknown command \"dance\""},
      {"pod", "needs a name"},
      {"pod a neuron", "\"neuron\" is not RESOURCE=NUMBER"},
      {"pod a neuron=x", "not RESOURCE=NUMBER"},
      {"pod a neuron=-1", "not RESOURCE=NUMBER"},
      {"pod a =1", "not RESOURCE=NUMBER"},
      {"pod a neuron=1 neuron=2", "asks twice"},
      {"pod a chips@", "is not CLAIM@DEVICE"},
      {"pod a chips@a,,b", "is not CLAIM@DEVICE"},
      {"pod a @a", "is not CLAIM@DEVICE"},
      {"pod a chips@a chips@b", "twice"},
      {"pod a big/c:neuron=1", "only init/ and sidecar/"},
      {"pod a :neuron=1", "without a name"},
      {"delete", "needs the name"},
      {"delete a b", "needs the name"},
      {"wait", "needs RESOURCE=N"},
      {"advance", "needs a duration"},
      {"advance soon", "soon"},
      {"list all", "takes no argument"},
  };
  for (const auto& [line, text] : lines) {
    const auto command = parse_command(line);
    ASSERT_FALSE(command.has_value()) << line;
    EXPECT_EQ(command.error().code, ErrorCode::invalid_argument) << line;
    EXPECT_THAT(command.error().message, HasSubstr(text)) << line;
  }
}

TEST(ScriptTest, HelpFitsATerminal) {
  std::istringstream help{std::string(script_help())};
  for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(ScriptTest, ShortNamesAndBack) {
  for (const char* name : {"neuron", "neuroncore", "neurondevice", "efa", "example.com/x"}) {
    EXPECT_EQ(short_resource_name(full_resource_name(name)), name);
  }
  EXPECT_EQ(short_resource_name("vpc.amazonaws.com/efa"), "efa");
}

}  // namespace
}  // namespace neuron::sim
