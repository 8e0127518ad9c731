#include "agent/host/preflight_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using preflight::CdiFacts;
using preflight::PathState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(PreflightFacts, EmptyRootIsAbsenceNotZero) {
  TempTree tree;
  const auto facts = gather_preflight_facts(tree.root());
  EXPECT_EQ(facts.neuron_class, PathState::absent);
  EXPECT_EQ(facts.uverbs_module, PathState::absent);
  EXPECT_EQ(facts.huge_pages.reserved_2m, std::nullopt);
  EXPECT_EQ(facts.online_cpus, std::nullopt);
  EXPECT_EQ(facts.pci_family, std::nullopt);
  EXPECT_EQ(facts.lnc_file.state, PathState::absent);
  EXPECT_EQ(facts.cdi.state, CdiFacts::State::unknown);
  EXPECT_THAT(facts.cdi.evidence.value, HasSubstr("missing"));
  EXPECT_FALSE(facts.own_dev);  // a captured dev/ is the machine's
}

TEST(PreflightFacts, ReadsTheMachine) {
  TempTree tree;
  tree.folder("sys/class/neuron_device");
  tree.folder("sys/module/ib_uverbs");
  tree.write("sys/devices/system/cpu/online", "0-7,16-23\n");
  tree.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "10561\n");
  tree.write("proc/meminfo", "MemTotal: 1 kB\nHugepagesize:       2048 kB\n");
  tree.write("opt/aws/neuron/logical_nc_config", "NEURON_LOGICAL_NC_CONFIG=1\n");
  write_function(tree, "pci0000:00", "0000:00:1f.0", "0x7064");
  const auto facts = gather_preflight_facts(tree.root());
  EXPECT_EQ(facts.neuron_class, PathState::present);
  EXPECT_EQ(facts.uverbs_module, PathState::present);
  EXPECT_EQ(facts.online_cpus, 16);
  EXPECT_EQ(facts.huge_pages.reserved_2m, 10561U);
  EXPECT_EQ(facts.huge_pages.default_bytes, 2U << 20U);
  EXPECT_EQ(facts.lnc_file.state, PathState::present);
  EXPECT_EQ(facts.lnc_file.reason, "");
  EXPECT_EQ(facts.pci_family, model::Family::inferentia);
}

TEST(PreflightFacts, GarbageIsUnknown) {
  TempTree tree;
  tree.write("sys/devices/system/cpu/online", "all\n");
  tree.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "-1\n");
  tree.write("proc/meminfo", "Hugepagesize: many kB\n");
  tree.write("opt/aws/neuron/logical_nc_config", "LNC=\x1b[31m2\n");
  const auto facts = gather_preflight_facts(tree.root());
  EXPECT_EQ(facts.online_cpus, std::nullopt);
  EXPECT_EQ(facts.huge_pages.reserved_2m, std::nullopt);
  EXPECT_EQ(facts.huge_pages.default_bytes, std::nullopt);
  EXPECT_NE(facts.lnc_file.reason, "");
  EXPECT_EQ(facts.lnc_file.text, "LNC=\\x1b[31m2");
  tree.remove("opt/aws/neuron/logical_nc_config");
  tree.folder("opt/aws/neuron/logical_nc_config");
  EXPECT_EQ(gather_preflight_facts(tree.root()).lnc_file.state, PathState::unknown);
  tree.fifo("proc/meminfo");  // costs one read
  EXPECT_EQ(gather_preflight_facts(tree.root()).huge_pages.default_bytes, std::nullopt);
}

TEST(PreflightFacts, ForeignRdmaDevicesAreNamedWithTheirDriver) {
  TempTree tree;
  write_efa(tree, "pci0000:10", "0000:10:19.0", "rdmap16s25", 0);
  write_function(tree, "pci0000:70", "0000:73:00.0", "0x1021", "0x15b3");
  const std::string path = "sys/devices/pci0000:70/0000:73:00.0";
  tree.folder("sys/bus/pci/drivers/mlx5_core");
  tree.link(path + "/driver", "/sys/bus/pci/drivers/mlx5_core");
  tree.link(path + "/infiniband/ibp115s0f0/device", "../../../0000:73:00.0");
  tree.link("sys/class/infiniband/ibp115s0f0", "../../devices/pci0000:70/0000:73:00.0/infiniband/ibp115s0f0");
  tree.write("sys/class/infiniband_verbs/uverbs1/ibdev", "ibp115s0f0\n");
  tree.folder("sys/class/infiniband/rxe0");  // software RDMA: no function, no driver, no verbs here
  const auto foreign = gather_preflight_facts(tree.root()).foreign_rdma;
  ASSERT_THAT(foreign, SizeIs(2));
  EXPECT_EQ(foreign[0].name, "ibp115s0f0");
  EXPECT_EQ(foreign[0].driver, "mlx5_core");
  EXPECT_TRUE(foreign[0].has_verbs_node);
  EXPECT_EQ(foreign[1].name, "rxe0");
  EXPECT_EQ(foreign[1].driver, "");
  EXPECT_FALSE(foreign[1].has_verbs_node);
}

TEST(PreflightFacts, CdiByContainerdVersion) {
  const auto state = [](std::string_view text) { return assess_containerd_config(text, "c").state; };
  EXPECT_EQ(state("version = 2\n"), CdiFacts::State::off);
  EXPECT_EQ(state("version = 3\n"), CdiFacts::State::on);
  EXPECT_EQ(state("version = 2\n[plugins.cri]\n  enable_cdi = true # wanted\n"), CdiFacts::State::on);
  EXPECT_EQ(state("version = 3\n  enable_cdi=false\n"), CdiFacts::State::off);
  EXPECT_EQ(state("version = 3\n# enable_cdi = false\n"), CdiFacts::State::on);
  EXPECT_EQ(state("version = 3\nenable_cdi = maybe\n"), CdiFacts::State::on);
  EXPECT_EQ(state(""), CdiFacts::State::off);  // version 1
  EXPECT_THAT(assess_containerd_config("version = 2", "etc/containerd/config.toml").evidence.value,
              HasSubstr("before 2.0"));
}

TEST(PreflightFacts, KubeletDirectory) {
  TempTree tree;
  EXPECT_EQ(gather_kubelet_facts(tree.at("nothing")).itself, PathState::absent);
  EXPECT_EQ(gather_kubelet_facts(tree.path()).device_plugins, PathState::absent);
  tree.write("device-plugins/kubelet.sock", "");
  tree.write("device-plugins/nvidia-gpu.sock", "");
  tree.write("device-plugins/aws-efa-device-plugin.sock", "");
  tree.write("device-plugins/neuron-agent.lock", "");
  const auto facts = gather_kubelet_facts(tree.path());
  EXPECT_EQ(facts.directory, tree.path());
  EXPECT_EQ(facts.kubelet_socket, PathState::present);
  EXPECT_EQ(facts.pod_resources_socket, PathState::absent);
  EXPECT_THAT(facts.plugin_sockets, ElementsAre("aws-efa-device-plugin.sock", "nvidia-gpu.sock"));
}

}  // namespace
}  // namespace neuron::host
