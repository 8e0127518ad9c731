#include "agent/host/efa_sysfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EfaSysfs : public ::testing::Test {
 protected:
  std::vector<model::EfaInterface> read() {
    const FsRoot root = tree_.root();
    problems_.clear();
    if (pci_.refresh(root) == PciInventory::Change::changed) efa_.forget();
    return efa_.read(
        root, pci_, [](const auto&) { return true; }, problems_);
  }

  TempTree tree_;
  PciInventory pci_;
  EfaReader efa_;
  std::vector<model::ReadProblem> problems_;
};

TEST_F(EfaSysfs, NoInterfaceIsNormal) {
  EXPECT_THAT(read(), IsEmpty());
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_THAT(pci_.problems(), IsEmpty());
}

TEST_F(EfaSysfs, InterfacesAreJoinedThroughIbdevNotByOrder) {
  write_efa(tree_, "pci0000:b8/0000:b9:02.1", "0000:c9:00.0", "rdmap201s0", 0);
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 5);
  write_function(tree_, "pci0000:10", "0000:10:1b.0", "0x7164");
  write_function(tree_, "pci0000:10", "0000:10:05.0", "0x1021", "0x15b3");
  const auto efas = read();
  ASSERT_THAT(efas, SizeIs(2));
  EXPECT_EQ(efas[0].name, "rdmap16s25");
  EXPECT_EQ(efas[0].uverbs, "uverbs5");
  EXPECT_TRUE(efas[0].node_present);
  EXPECT_TRUE(efas[0].driver_bound);
  EXPECT_EQ(efas[0].pci_device_id, 0xefa1);
  EXPECT_EQ(efas[0].numa_node, 1);
  EXPECT_THAT(efas[0].cpus.value(), ElementsAre(2, 3));
  EXPECT_EQ(efas[0].p2p, "NEURON");
  EXPECT_EQ(efas[0].switch_key, "0000:10");
  EXPECT_EQ(efas[1].name, "rdmap201s0");
  EXPECT_EQ(efas[1].uverbs, "uverbs0");
  EXPECT_EQ(efas[1].switch_key, "0000:b9");
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_THAT(pci_.amazon_functions(), SizeIs(3));
  EXPECT_EQ(read(), efas);
}

TEST_F(EfaSysfs, WithoutUverbsTheInterfaceIsListedButUnusable) {
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "efa_0", -1);
  const auto efas = read();
  ASSERT_THAT(efas, SizeIs(1));
  EXPECT_TRUE(efas[0].driver_bound);
  EXPECT_EQ(efas[0].uverbs, std::nullopt);
  EXPECT_FALSE(efas[0].node_present);
}

TEST_F(EfaSysfs, UnboundRemovedAndBack) {
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  const auto before = read();
  tree_.remove("sys/devices/pci0000:10/0000:10:19.0/driver");
  tree_.remove("sys/devices/pci0000:10/0000:10:19.0/infiniband");
  tree_.remove("sys/class/infiniband/rdmap16s25");
  tree_.remove("sys/class/infiniband_verbs/uverbs0");
  const auto unbound = read();
  EXPECT_FALSE(unbound[0].driver_bound);
  EXPECT_EQ(unbound[0].name, "");
  EXPECT_EQ(unbound[0].uverbs, std::nullopt);
  tree_.remove("dev/infiniband/uverbs0");
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  EXPECT_EQ(read(), before);
  tree_.remove("dev/infiniband/uverbs0");
  EXPECT_FALSE(read()[0].node_present);
}

TEST_F(EfaSysfs, OtherDriverIsNotBound) {
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  tree_.link("sys/devices/pci0000:10/0000:10:19.0/driver", "../../../bus/pci/drivers/vfio-pci");
  EXPECT_FALSE(read()[0].driver_bound);
}

TEST_F(EfaSysfs, NameFromTheFunctionWhenClassLinksAreMissing) {
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  tree_.remove("sys/class/infiniband");
  EXPECT_EQ(read()[0].name, "rdmap16s25");
}

TEST_F(EfaSysfs, P2pIsReadEachTimeAndAbsenceIsNotAProblem) {
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  write_efa(tree_, "pci0000:10", "0000:10:1a.0", "rdmap16s26", 1);
  tree_.remove("sys/devices/pci0000:10/0000:10:1a.0/p2p");
  EXPECT_EQ(read()[1].p2p, std::nullopt);
  tree_.write("sys/devices/pci0000:10/0000:10:19.0/p2p", "\n");
  const auto efas = read();
  EXPECT_EQ(efas[0].p2p, "");
  EXPECT_THAT(efas[1].problems, IsEmpty());
}

TEST_F(EfaSysfs, BadFilesStayWithTheirInterface) {
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  write_efa(tree_, "pci0000:10", "0000:10:1a.0", "rdmap16s26", 1);
  const std::string bad = "sys/devices/pci0000:10/0000:10:19.0/";
  tree_.write(bad + "numa_node", "NaN");
  tree_.fifo(bad + "local_cpulist");
  tree_.remove(bad + "p2p");
  tree_.folder(bad + "p2p");
  tree_.remove(bad + "driver");
  tree_.write(bad + "driver", "efa");
  const auto efas = read();
  EXPECT_EQ(efas[0].numa_node, std::nullopt);
  EXPECT_EQ(efas[0].cpus, std::nullopt);
  EXPECT_EQ(efas[0].p2p, std::nullopt);
  EXPECT_TRUE(efas[0].driver_bound) << "a link that cannot be read is no evidence, and the RDMA device is there";
  EXPECT_THAT(efas[0].problems, SizeIs(4));
  EXPECT_THAT(efas[1].problems, IsEmpty());
  EXPECT_EQ(read(), efas);
}

TEST_F(EfaSysfs, BadClassEntriesAreNamed) {
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  tree_.write("sys/class/infiniband_verbs/uverbs3/ibdev", "rdmap16s25\n");
  tree_.folder("sys/class/infiniband_verbs/uverbs4");
  tree_.link("sys/class/infiniband/loop", "loop");
  tree_.folder("sys/class/infiniband/bad name");
  tree_.folder("sys/class/infiniband/rxe0");
  const auto efas = read();
  EXPECT_EQ(efas[0].uverbs, "uverbs0");
  EXPECT_THAT(sentences(problems_),
              ::testing::UnorderedElementsAre(HasSubstr("uverbs3/ibdev: names rdmap16s25 as uverbs0 does"),
                                              HasSubstr("uverbs4/ibdev"), HasSubstr("infiniband/loop"),
                                              HasSubstr("bad name: not a device name")));
}

TEST_F(EfaSysfs, UnreadableFunctionsAreSkippedAndNamed) {
  write_function(tree_, "pci0000:10", "0000:10:1b.0", "0x7164");
  write_function(tree_, "pci0000:10", "0000:10:1c.0", "device?");
  tree_.link("sys/bus/pci/devices/0000:10:1d.0", "/etc/passwd");
  tree_.folder("sys/bus/pci/devices/10000:00:00.0");
  read();
  EXPECT_THAT(pci_.amazon_functions(), SizeIs(1));
  EXPECT_THAT(sentences(pci_.problems()),
              ElementsAre(HasSubstr("10:1c.0/device: not a PCI id"), HasSubstr("10:1d.0/vendor")));
  EXPECT_EQ(pci_.find({0, 0x10, 0x1b, 0})->device_id, 0x7164);
  EXPECT_EQ(pci_.find({0, 0x10, 0x1c, 0}), nullptr);
}

TEST_F(EfaSysfs, LostCommandsAreCountedWhereTheDriverCountsThem) {
  write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  EXPECT_EQ(read()[0].no_completion_cmds, std::nullopt);
  const std::string folder = "sys/class/infiniband/rdmap16s25/";
  tree_.write(folder + "ports/1/hw_counters/no_completion_cmds", "2\n");  // before r1.14
  EXPECT_EQ(read()[0].no_completion_cmds, 2U);
  tree_.write(folder + "hw_counters/no_completion_cmds", "3\n");
  EXPECT_EQ(read()[0].no_completion_cmds, 3U);
  EXPECT_THAT(read()[0].problems, IsEmpty());
  tree_.write(folder + "hw_counters/no_completion_cmds", "many\n");
  EXPECT_EQ(read()[0].no_completion_cmds, std::nullopt);
  EXPECT_THAT(sentences(read()[0].problems), ElementsAre(HasSubstr("hw_counters/no_completion_cmds: not a number")));
}

}  // namespace
}  // namespace neuron::host
