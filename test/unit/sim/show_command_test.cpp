#include "tools/neuron-sim/commands.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "test/fakes/fake_host.h"

namespace neuron::sim {
namespace {

using fakes::FakeHost;
using ::testing::HasSubstr;

TEST(ShowCommand, TellsVariablesAndNodesInOrder) {
  FakeHost host("trn1.32xlarge");
  host.write();
  ASSERT_EQ(::setenv("NEURON_RT_VISIBLE_CORES", "0-3", 1), 0);
  std::ostringstream out;
  std::ostringstream errors;
  EXPECT_EQ(run_show_command(host.path(), out, errors), 0);
  const std::string text = out.str();
  EXPECT_TRUE(text.starts_with("NEURON_RT_VISIBLE_CORES=0-3\n/dev/neuron0  ")) << text;
  EXPECT_LT(text.find("/dev/neuron2 "), text.find("/dev/neuron10 "));
  EXPECT_LT(text.find("/dev/neuron15 "), text.find("/dev/infiniband/uverbs0 "));
  if (::geteuid() != 0) GTEST_SKIP() << "only root may make device nodes";
  EXPECT_THAT(text, HasSubstr("/dev/neuron0  character device 1:3, simulated, opens\n"));
}

TEST(ShowCommand, ARealDeviceIsNotOpened) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may make device nodes";
  FakeHost host("trn2.3xlarge");
  host.write();
  const std::string node = host.path() + "/dev/neuron0";
  std::filesystem::remove(node);
  ASSERT_EQ(::mknod(node.c_str(), S_IFCHR | 0600, makedev(239, 0)), 0);
  std::ostringstream out;
  std::ostringstream errors;
  EXPECT_EQ(run_show_command(host.path(), out, errors), 0);
  EXPECT_THAT(out.str(), HasSubstr("/dev/neuron0  character device 239:0\n"));
}

TEST(ShowCommand, NothingIsAFailure) {
  FakeHost host("trn2.3xlarge");
  std::ostringstream out;
  std::ostringstream errors;
  EXPECT_EQ(run_show_command(host.path(), out, errors), 1);
  EXPECT_THAT(errors.str(), HasSubstr("has none"));
}

}  // namespace
}  // namespace neuron::sim
