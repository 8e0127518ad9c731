#include "test/fakes/fake_host.h"

#include <gtest/gtest.h>

#include "test/unit/sim/files.h"

namespace neuron::fakes {
namespace {

using sim::testing::is_there;
using sim::testing::text_of;

TEST(FakeHost, WritesAndSetsAndCleansUp) {
  std::string path;
  {
    FakeHost host("trn1.32xlarge");
    host.driver("2.28.0.0").missing({3}).file("proc/4290/comm", "python3\n").write();
    host.set("neuron4", "sram_ecc_uncorrected=1");
    path = host.path();
    EXPECT_EQ(text_of(path + "/sys/class/neuron_device/neuron4/stats/hardware/sram_ecc_uncorrected"), "1\n");
    EXPECT_EQ(text_of(path + "/proc/4290/comm"), "python3\n");
    EXPECT_FALSE(is_there(path + "/dev/neuron3"));
  }
  EXPECT_FALSE(is_there(path));
}

TEST(FakeHost, AFileMayReplaceAWrittenOne) {
  FakeHost host("trn2.3xlarge");
  host.file("sys/class/neuron_device/neuron0/core_count", "8\n").write();
  EXPECT_EQ(text_of(host.path() + "/sys/devices/virtual/neuron_device/neuron0/core_count"), "8\n");
}

}  // namespace
}  // namespace neuron::fakes
