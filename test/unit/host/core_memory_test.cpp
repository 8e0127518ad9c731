#include "agent/host/neuron_sysfs.h"

#include <gtest/gtest.h>

#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

TEST(CoreMemory, SumsWhatProcessesOwn) {
  TempTree tree;
  write_device(tree, 0, Generation::trn2_2_30);
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1), std::nullopt);  // no kinds: nobody can tell
  const std::string kinds = "sys/devices/virtual/neuron_device/neuron0/neuron_core1/stats/memory_usage/device_mem/";
  tree.write(kinds + "tensors/total", "4096\n");
  tree.write(kinds + "constants/total", "1\n");
  tree.write(kinds + "collectives/total", "garbage");
  tree.write(kinds + "driver_memory/total", "1000000\n");  // the driver's own
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1), 4097U);
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 0), std::nullopt);
  tree.write(kinds + "model_code/total", "18446744073709550616\n");  // went below zero
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1), 4097U);
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1, 4096), 4097U) << "each kind by itself";
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1, 100), 1U);
  EXPECT_EQ(process_memory_of_core(tree.root(), 9, 0), std::nullopt);
}

// A kind that cannot be used may hide what a process has; one without a file hides nothing.
TEST(CoreMemory, NothingIsKnownToBeFreeBesideAnUnusableKind) {
  TempTree tree;
  write_device(tree, 0, Generation::trn2_2_30);
  const std::string kinds = "sys/devices/virtual/neuron_device/neuron0/neuron_core1/stats/memory_usage/device_mem/";
  tree.write(kinds + "constants/total", "0\n");
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1), 0U);
  for (const char* text : {"garbage", "", "18446744073709550616\n"}) {
    tree.write(kinds + "tensors/total", text);
    EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1), std::nullopt) << text;
  }
  tree.write(kinds + "tensors/total", "4096\n");
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1, 100), std::nullopt) << "more than the device has";
  EXPECT_EQ(process_memory_of_core(tree.root(), 0, 1), 4096U);
}

}  // namespace
}  // namespace neuron::host
