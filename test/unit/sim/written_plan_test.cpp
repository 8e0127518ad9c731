#include "tools/neuron-sim/host_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/fakes/fake_host.h"
#include "test/unit/sim/files.h"
#include "tools/neuron-sim/host_directory.h"

namespace neuron::sim {
namespace {

using fakes::FakeHost;
using testing::is_there;

HostPlan plan_of(const std::string& type) {
  HostPlan plan;
  plan.instance_type = type;
  return plan;
}

TEST(WrittenPlan, AHostIsKnownByWhatItWasWrittenFrom) {
  FakeHost host("trn2.3xlarge");
  host.write();
  EXPECT_TRUE(is_host_of(plan_of("trn2.3xlarge"), host.path()));
  EXPECT_FALSE(is_host_of(plan_of("trn2.48xlarge"), host.path()));
  EXPECT_FALSE(is_host_of(plan_of("no-such-type"), host.path()));
  auto other = plan_of("trn2.3xlarge");
  other.lnc = 1;
  EXPECT_FALSE(is_host_of(other, host.path()));
  other = plan_of("trn2.3xlarge");
  other.without.insert(Part::efa);
  EXPECT_FALSE(is_host_of(other, host.path()));
}

TEST(WrittenPlan, DefaultsThatAreSpelledOutAreTheSame) {
  FakeHost host("trn1.32xlarge");
  host.missing({5, 3}).write();
  auto plan = plan_of("trn1.32xlarge");
  plan.missing = {3, 5};
  plan.driver_version = "2.30.2.0";
  EXPECT_TRUE(is_host_of(plan, host.path()));
}

TEST(WrittenPlan, FaultsDoNotCount) {
  FakeHost host("trn1.2xlarge");
  host.write().set("neuron0", "vanish");
  EXPECT_TRUE(is_host_of(plan_of("trn1.2xlarge"), host.path()));
}

TEST(WrittenPlan, ExistsOnlyWhileTheHostIsWhole) {
  FakeHost host("trn2.3xlarge");
  host.write();
  EXPECT_TRUE(is_whole_host(host.path()));
  // A directory in a file's place cannot be taken away while it is in use: the rewriting ends half way.
  HostPlan broken = plan_of("trn2.3xlarge");
  broken.files["sys"] = "a file where a folder with files is";
  EXPECT_FALSE(write_host(broken, host.path()));
  EXPECT_FALSE(is_whole_host(host.path()));
  EXPECT_FALSE(is_host_of(plan_of("trn2.3xlarge"), host.path()));
  EXPECT_TRUE(write_host(plan_of("trn2.3xlarge"), host.path()));
  EXPECT_TRUE(is_whole_host(host.path()));
}

TEST(WrittenPlan, AForeignFileInItsPlaceIsNone) {
  FakeHost host("trn2.3xlarge");
  host.write();
  const std::string file = host.path() + "/" + kPlanFile;
  std::ofstream(file, std::ios::app) << "more";
  EXPECT_FALSE(is_host_of(plan_of("trn2.3xlarge"), host.path()));
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);
  EXPECT_FALSE(is_host_of(plan_of("trn2.3xlarge"), host.path()));
  EXPECT_FALSE(is_whole_host(host.path()));
}

TEST(WrittenPlan, RootDoesNotKeepPlainFilesForDevices) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may make device nodes";
  FakeHost host("trn2.3xlarge");
  host.write();
  const std::string node = host.path() + "/dev/neuron0";
  EXPECT_FALSE(has_plain_files_for_devices(host.path()));
  std::filesystem::remove(node);
  EXPECT_TRUE(is_host_of(plan_of("trn2.3xlarge"), host.path())) << "a node that a fault took away";
  std::ofstream(node) << "";
  EXPECT_TRUE(has_plain_files_for_devices(host.path()));
  EXPECT_FALSE(is_host_of(plan_of("trn2.3xlarge"), host.path()));
}

}  // namespace
}  // namespace neuron::sim
