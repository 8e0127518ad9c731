#include "tools/neuron-sim/kubelet/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "test/unit/kubelet/test_plugin.h"

namespace neuron::sim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
constexpr const char* kNeuron = "aws.amazon.com/neuron";

struct Outcome {
  int exit_code = 0;
  std::string out, errors;
};

Outcome run_shell(FakeKubelet& kubelet, const std::string& script,
                  std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
  std::istringstream input(script);
  std::ostringstream out, errors;
  const int exit_code = Shell(kubelet, out, errors, timeout).run(input, "");
  return {exit_code, out.str(), errors.str()};
}

Outcome run_program(KubeletCommand command, const std::string& script) {
  std::istringstream input(script);
  std::ostringstream out, errors;
  const int exit_code = run_kubelet_command(command, input, out, errors);
  return {exit_code, out.str(), errors.str()};
}

TEST(ShellTest, APodsLife) {
  KubeletTest kubelet;
  TestPlugin plugin(*kubelet, kNeuron, "neuron.sock", numbered_devices(2));
  ASSERT_TRUE(plugin.register_plugin().ok());
  const Outcome run = run_shell(*kubelet,
                                "wait neuron=2\npod train neuron=2\npod late neuron=1\nlist\nstart train\n"
                                "delete train\nshow\necho done\nquit\nnot reached\n");
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run.errors, "");
  EXPECT_THAT(run.out, StartsWith("aws.amazon.com/neuron: 2 of 2 allocatable\nreached after "));
  EXPECT_THAT(run.out, HasSubstr("pod train: admitted\n  main\n    aws.amazon.com/neuron  2 units: 0-1\n"));
  EXPECT_THAT(run.out, HasSubstr("pod late: refused\n"));
  EXPECT_THAT(run.out, HasSubstr("train  main       aws.amazon.com/neuron  0-1\n"));
  EXPECT_THAT(run.out, HasSubstr("pod train: container restarted\n"));
  EXPECT_THAT(run.out, HasSubstr("pod train: deleted\n"));
  EXPECT_THAT(run.out, HasSubstr("aws.amazon.com/neuron         2            2       2  -\ndone\n"));
}

TEST(ShellTest, AnUnknownCommandIsNamedWithItsLineAndTheRestGoesOn) {
  KubeletTest kubelet;
  const Outcome run = run_shell(*kubelet, "# a comment\n\ndance\ndelete nobody\necho end\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.errors,
            "line 3: unknown command \"dance\" (help lists them)\nline 4: no pod nobody in namespace default\n");
  EXPECT_EQ(run.out, "end\n");
}

TEST(ShellTest, AWaitThatRunsOutSaysWhatIsThere) {
  KubeletTest kubelet;
  const Outcome run = run_shell(*kubelet, "wait neuron=4\n", std::chrono::milliseconds(1));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, StartsWith("line 1: waited "));
  EXPECT_THAT(run.errors, HasSubstr("aws.amazon.com/neuron=4: 0 of 0 allocatable"));
}

TEST(ShellTest, RestartsTheKubelet) {
  KubeletTest kubelet;
  TestPlugin plugin(*kubelet, kNeuron, "neuron.sock", numbered_devices(2));
  ASSERT_TRUE(plugin.register_plugin().ok());
  const Outcome run = run_shell(*kubelet, "wait neuron=2\nrestart\nshow\ndown\nup\nadvance 5m\nhelp\n");
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.out, HasSubstr("kubelet: restarted"));
  EXPECT_THAT(run.out, HasSubstr("aws.amazon.com/neuron         0            0       0  (plugin gone)\n"));
  EXPECT_THAT(run.out, HasSubstr("kubelet: down\nkubelet: up"));
  EXPECT_THAT(run.out, HasSubstr("Commands, one per line"));
}

TEST(CommandTest, RunsAScriptFromInputOrFile) {
  const TempDir dir;
  KubeletCommand command;
  command.kubelet_dir = dir.path() + "/new/kubelet";
  EXPECT_EQ(run_program(command, "show\n").out, "no resource was ever registered\n");
  command.script = dir.path() + "/script";
  std::ofstream(command.script) << "echo from a file\n";
  EXPECT_EQ(run_program(command, "").out, "from a file\n");
  command.script = dir.path() + "/none";
  const Outcome missing = run_program(command, "");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.errors, HasSubstr("cannot read the script"));
}

TEST(CommandTest, RefusesWrongFlags) {
  const TempDir dir;
  KubeletCommand good;
  good.kubelet_dir = dir.path();
  KubeletCommand wait = good, timeout = good, policy = good;
  wait.wait_for = {"neuron"};
  timeout.timeout = "ten";
  policy.numa_policy = "restricted";
  for (const KubeletCommand& command : {wait, timeout, policy}) {
    const Outcome run = run_program(command, "");
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.errors, StartsWith("neuron-sim kubelet: --"));
  }
}

TEST(CommandTest, FailsWhenItCannotServeOrTheWaitRunsOut) {
  const TempDir dir;
  KubeletCommand command;
  command.kubelet_dir = dir.path() + "/" + std::string(100, 'x');
  const Outcome long_path = run_program(command, "");
  EXPECT_EQ(long_path.exit_code, 1);
  EXPECT_THAT(long_path.errors, HasSubstr("107 bytes"));
  command.kubelet_dir = dir.path();
  command.wait_for = {"neuron=1"};
  command.timeout = "1ms";
  const Outcome waited = run_program(command, "echo not reached\n");
  EXPECT_EQ(waited.exit_code, 1);
  EXPECT_EQ(waited.out, "");
}

TEST(CommandTest, SaysWhatHappensWhenAsked) {
  const TempDir dir;

  KubeletCommand command;
  command.kubelet_dir = dir.path();
  command.verbose = true;
  std::filesystem::create_directories(dir.path() + "/device-plugins");
  std::ofstream(dir.path() + "/device-plugins/kubelet_internal_checkpoint") << "no json";
  EXPECT_THAT(run_program(command, "").errors, HasSubstr("kubelet: checkpoint lost: "));
}

}  // namespace
}  // namespace neuron::sim::test
