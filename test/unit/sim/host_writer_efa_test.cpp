#include <gmock/gmock.h>

#include "test/fakes/fake_host.h"
#include "test/unit/sim/files.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;
using fakes::FakeHost;
using testing::is_there;
using testing::text_of;

// The uverbs<N> whose ibdev is `name`; "" when none.
std::string verbs_of(const FakeHost& host, const std::string& name) {
  const std::string folder = host.path() + "/sys/class/infiniband_verbs";
  if (!is_there(folder)) return "";
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && text_of(entry.path().string() + "/ibdev") == name + "\n")
      return entry.path().filename();
  }
  return "";
}

TEST(RdmaTree, EfaFilesOfTrn1) {
  FakeHost host("trn1.32xlarge");
  host.write();
  const std::string efa = host.path() + "/sys/class/infiniband/rdmap16s25";
  EXPECT_EQ(fs::canonical(efa + "/device").filename(), "0000:10:19.0");
  EXPECT_EQ(text_of(efa + "/device/vendor"), "0x1d0f\n");
  EXPECT_EQ(text_of(efa + "/device/device"), "0xefa1\n");
  EXPECT_EQ(text_of(efa + "/device/class"), "0x020000\n");
  EXPECT_EQ(fs::canonical(efa + "/device/driver").filename(), "efa");
  EXPECT_EQ(text_of(efa + "/device/p2p"), "NEURON\n");
  EXPECT_EQ(text_of(efa + "/device/local_cpulist"), "0-31,64-95\n");
  EXPECT_EQ(text_of(efa + "/ports/1/state"), "4: ACTIVE\n");
  EXPECT_EQ(text_of(efa + "/ports/1/hw_counters/retrans_timeout_events"), "0\n");
  EXPECT_EQ(text_of(efa + "/hw_counters/no_completion_cmds"), "0\n");
  EXPECT_FALSE(is_there(efa + "/ports/1/counters"));
  EXPECT_FALSE(is_there(efa + "/hca_type"));
  EXPECT_THAT(text_of(efa + "/node_guid"), ::testing::MatchesRegex("([0-9a-f]{4}:){3}[0-9a-f]{4}\n"));
}

TEST(RdmaTree, OldCardsLackTheNetworkCounters) {
  FakeHost host("p4d.24xlarge");
  host.write();
  const std::string efa = host.path() + "/sys/class/infiniband/rdmap16s27";
  EXPECT_TRUE(is_there(efa + "/ports/1/hw_counters/rdma_write_recv_bytes"));
  EXPECT_FALSE(is_there(efa + "/ports/1/hw_counters/retrans_bytes"));
  EXPECT_EQ(text_of(efa + "/device/p2p"), "NVIDIA\n");
  EXPECT_FALSE(is_there(host.path() + "/sys/class/neuron_device"));
}

TEST(RdmaTree, VerbsJoinThroughIbdev) {
  FakeHost host("trn1.32xlarge");
  host.write();
  const std::string verbs = verbs_of(host, "rdmap16s25");
  ASSERT_NE(verbs, "");
  EXPECT_NE(verbs, "uverbs0");  // it is the first by name
  EXPECT_TRUE(is_there(host.path() + "/dev/infiniband/" + verbs));
  EXPECT_EQ(text_of(host.path() + "/sys/class/infiniband_verbs/abi_version"), "6\n");
  EXPECT_EQ(fs::canonical(host.path() + "/sys/class/infiniband_verbs/" + verbs + "/device").filename(), "0000:10:19.0");
}

TEST(RdmaTree, WithoutUverbsNobodyCanOpenTheInterfaces) {
  FakeHost host("trn1.32xlarge");
  host.without(Part::uverbs).write();
  EXPECT_TRUE(is_there(host.path() + "/sys/class/infiniband/rdmap16s25"));
  EXPECT_FALSE(is_there(host.path() + "/sys/class/infiniband_verbs"));
  EXPECT_FALSE(is_there(host.path() + "/dev/infiniband"));
  EXPECT_FALSE(is_there(host.path() + "/sys/module/ib_uverbs"));
}

TEST(RdmaTree, WithoutEfaThereIsNothingOfIt) {
  FakeHost host("trn1.32xlarge");
  host.without(Part::efa).write();
  EXPECT_FALSE(is_there(host.path() + "/sys/class/infiniband"));
  EXPECT_FALSE(is_there(host.path() + "/sys/bus/pci/devices/0000:10:19.0"));
  EXPECT_FALSE(is_there(host.path() + "/sys/module/efa"));
}

TEST(RdmaTree, ConnectXOfP6IsNoEfa) {
  FakeHost host("p6-b200.48xlarge");
  host.write();
  const std::string card = host.path() + "/sys/class/infiniband/ibp115s0f0";
  EXPECT_EQ(text_of(card + "/device/vendor"), "0x15b3\n");
  EXPECT_EQ(fs::canonical(card + "/device/driver").filename(), "mlx5_core");
  EXPECT_NE(verbs_of(host, "ibp115s0f0"), "");
}

TEST(RdmaTree, EfaWithoutNeuronDriverCannotDoPeerMemory) {
  FakeHost host("trn1.32xlarge");
  host.without(Part::driver).write();
  EXPECT_EQ(text_of(host.path() + "/sys/bus/pci/devices/0000:10:19.0/p2p"), "\n");
}

}  // namespace
}  // namespace neuron::sim
