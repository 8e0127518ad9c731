#include "agent/host/attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Attributes, OnlyPlainDeviceNamesAreDevices) {
  EXPECT_EQ(device_index_of("neuron0"), 0);
  EXPECT_EQ(device_index_of("neuron15"), 15);
  EXPECT_EQ(device_index_of("neuron9999"), 9999);
  for (const char* name : {"neuron", "neuron01", "neuron0x", "neuron-1", "neuron999999", "neuron10000", "neuron 1",
                           "Neuron1", "node_id_2", "ultraserver_mode", "neuron_core0", "xneuron1", ""}) {
    EXPECT_EQ(device_index_of(name), std::nullopt) << name;
  }
}

TEST(Attributes, CoreAndVerbsNames) {
  EXPECT_EQ(core_index_of("neuron_core7"), 7);
  EXPECT_EQ(core_index_of("neuron_core32"), std::nullopt);
  EXPECT_EQ(core_index_of("neuron_core07"), std::nullopt);
  EXPECT_EQ(uverbs_index_of("uverbs31"), 31);
  EXPECT_EQ(uverbs_index_of("abi_version"), std::nullopt);
  EXPECT_TRUE(is_rdma_name("rdmap16s25"));
  EXPECT_FALSE(is_rdma_name("../etc"));
  EXPECT_FALSE(is_rdma_name(std::string(64, 'a')));
}

TEST(Attributes, EccOfADeviceOffTheBusIsNoCount) {
  EXPECT_EQ(parse_ecc_count("0").value(), 0U);
  EXPECT_EQ(parse_ecc_count("65535").value(), 65535U) << "all ones; the health policy judges it";
  for (const char* text : {"65536", "-1", "", "x", "1 2", "0x10"}) EXPECT_FALSE(parse_ecc_count(text)) << text;
}

TEST(Attributes, Numbers) {
  EXPECT_EQ(parse_counter("18446744073709551615").value(), 18446744073709551615U);
  EXPECT_FALSE(parse_counter("18446744073709551616"));
  EXPECT_EQ(parse_heartbeat("255").value(), 255U);
  EXPECT_FALSE(parse_heartbeat("256"));
  EXPECT_EQ(parse_reset_state("2").value(), 2);
  EXPECT_FALSE(parse_reset_state("3"));
  EXPECT_EQ(parse_core_count("8").value(), 8);
  EXPECT_FALSE(parse_core_count("0"));
  EXPECT_FALSE(parse_core_count("33"));
  EXPECT_EQ(parse_numa_node("-1").value(), -1);
  EXPECT_FALSE(parse_numa_node("-2"));
  EXPECT_THAT(parse_cpu_list("0-1,64").value(), ElementsAre(0, 1, 64));
  EXPECT_FALSE(parse_cpu_list("0-99999999"));
}

TEST(Attributes, ConnectedDevices) {
  EXPECT_THAT(parse_connected_devices("12, 3, 4, 1").value(), ElementsAre(12, 3, 4, 1));
  EXPECT_THAT(parse_connected_devices("").value(), IsEmpty());
  std::string many = "1";
  for (int i = 0; i < 65535; ++i) many += ", 1";
  EXPECT_FALSE(parse_connected_devices(many));
  for (const char* text : {"a", "1,,2", "1;2", "-1", "10000", "1, 2,"})
    EXPECT_FALSE(parse_connected_devices(text)) << text;
}

TEST(Attributes, SerialAndArchitecture) {
  EXPECT_EQ(parse_serial("19fcda00f5ff6eb9").value(), "19fcda00f5ff6eb9");
  EXPECT_EQ(parse_serial("").value(), std::nullopt);
  EXPECT_FALSE(parse_serial("19fcda00f5ff6eb"));
  EXPECT_FALSE(parse_serial("19fcda00f5ff6ebg"));
  EXPECT_EQ(parse_arch("NDv2").value(), "NDv2");
  EXPECT_FALSE(parse_arch("\x1b[31mNDv2"));
}

TEST(Attributes, LncConfig) {
  EXPECT_EQ(parse_lnc_config("NEURON_LOGICAL_NC_CONFIG=1").value(), 1);
  EXPECT_EQ(parse_lnc_config("# set by admin\n\nNEURON_LOGICAL_NC_CONFIG=2\n").value(), 2);
  EXPECT_EQ(parse_lnc_config("NEURON_LOGICAL_NC_CONFIG=2\nNEURON_LOGICAL_NC_CONFIG=1\n").value(), 1);
  for (const char* text :
       {"", "1", "NEURON_LOGICAL_NC_CONFIG=", "NEURON_LOGICAL_NC_CONFIG=3", "NEURON_LOGICAL_NC_CONFIG=1x"}) {
    EXPECT_FALSE(parse_lnc_config(text)) << text;
  }
}

TEST(Attributes, InstanceId) {
  EXPECT_EQ(instance_id_of("i-0592464924bd45322"), "i-0592464924bd45322");
  EXPECT_EQ(instance_id_of("Not Specified"), "");
  EXPECT_EQ(instance_id_of("i-"), "");
  EXPECT_EQ(instance_id_of("i-05924649 rm -rf"), "");
}

TEST(Attributes, SwitchKeyFromBothShapesOfParent) {
  EXPECT_EQ(switch_key_of("sys/devices/pci0000:b8/0000:b9:02.1/0000:cc:00.0"), "0000:b9");
  EXPECT_EQ(switch_key_of("sys/devices/pci0000:10/0000:10:1b.0"), "0000:10");
  EXPECT_EQ(switch_key_of("sys/devices/virtual/0000:10:1b.0"), "");
  EXPECT_EQ(switch_key_of("pcixxxx:10/0000:10:1b.0"), "");
  EXPECT_EQ(switch_key_of("0000:10:1b.0"), "");
  EXPECT_EQ(switch_key_of(""), "");
}

TEST(Attributes, PcieRootIsTheHostBridge) {
  EXPECT_EQ(pcie_root_of("sys/devices/pci0000:b8/0000:b9:02.1/0000:cc:00.0"), "pci0000:b8");
  EXPECT_EQ(pcie_root_of("sys/devices/pci0000:10/0000:10:1b.0"), "pci0000:10");
  EXPECT_EQ(pcie_root_of("sys/devices/virtual/0000:10:1b.0"), "");
  EXPECT_EQ(pcie_root_of("sys/devices/pcixxxx:10/0000:10:1b.0"), "");
  EXPECT_EQ(pcie_root_of("sys/devices/pci0000:101/0000:10:1b.0"), "");
  EXPECT_EQ(pcie_root_of(""), "");
}

const health::DeviceSignal& file_named(std::string_view suffix) {
  for (const health::DeviceSignal& file : health::device_signals()) {
    if (file.path.ends_with(suffix)) return file;
  }
  ADD_FAILURE() << suffix;
  return health::device_signals().front();
}

TEST(SignalFiles, UnreachableIsNeitherZeroNorHealthy) {
  model::DeviceSignals signals;
  EXPECT_TRUE(store_signal(file_named("unhealthy_components"), "device_unreachable", signals));
  EXPECT_TRUE(store_signal(file_named("healthcheck_heartbeat"), "7", signals));
  EXPECT_EQ(signals.unreachable, true);
  EXPECT_EQ(signals.unhealthy_components, std::nullopt);
  EXPECT_EQ(signals.heartbeat, 7U);
}

TEST(SignalFiles, ComponentsAreListed) {
  model::DeviceSignals signals;
  EXPECT_TRUE(store_signal(file_named("unhealthy_components"), "hbm,link_efa", signals));
  EXPECT_THAT(signals.unhealthy_components.value(), ElementsAre("hbm", "link_efa"));
  EXPECT_EQ(signals.unreachable, false);
  EXPECT_TRUE(store_signal(file_named("unhealthy_components"), "", signals));
  EXPECT_THAT(signals.unhealthy_components.value(), IsEmpty());
  EXPECT_FALSE(store_signal(file_named("unhealthy_components"), "hbm;\x01", signals));
}

TEST(SignalFiles, EventsAloneDoNotProveReachability) {
  model::DeviceSignals signals;
  EXPECT_TRUE(store_signal(file_named("hw_error_event"), "3", signals));
  EXPECT_EQ(signals.hw_error_events, 3U);
  EXPECT_EQ(signals.unreachable, std::nullopt);
  EXPECT_TRUE(store_signal(file_named("/hbm_ecc_err_count"), "65535", signals));
  EXPECT_EQ(signals.hbm_ecc_errors, 65535U) << "for the health policy";
}

}  // namespace
}  // namespace neuron::host
