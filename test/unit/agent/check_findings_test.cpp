// Every finding that a machine's files can provoke, on a simulated host, from end to end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "test/unit/agent/checked_node.h"

namespace neuron::agent::test {
namespace {

using ::testing::ElementsAre;
using Change = std::function<void(CheckedNode&)>;

constexpr const char* kDevices = "sys/devices/virtual/neuron_device/";

// What is found on a node of `type` that is changed before and after it is written.
std::vector<std::string> found_on(const std::string& type, const Change& before, const Change& after) {
  CheckedNode node(type);
  if (before) before(node);
  node.host.write();
  if (after) after(node);
  return node.codes();
}

void expect_found(const std::string& code, const std::string& type, const Change& before, const Change& after = {}) {
  const bool has_efa = type != "inf1.6xlarge" && type != "trn1.2xlarge";
  const auto codes = found_on(type, before, after);
  if (has_efa) {
    EXPECT_THAT(codes, ElementsAre(code, "not_checked"));  // a simulated host has no fabric
  } else {
    EXPECT_THAT(codes, ElementsAre(code));
  }
}

Change set(const std::string& target, const std::string& action) {
  return [=](CheckedNode& node) { node.host.set(target, action); };
}
Change file(const std::string& path, const std::string& text) {
  return [=](CheckedNode& node) { node.host.file(path, text); };
}
Change without(sim::Part part) {
  return [=](CheckedNode& node) { node.host.without(part); };
}

TEST(CheckFindings, NothingOnSoundNodes) {
  EXPECT_THAT(found_on("inf1.6xlarge", {}, {}), ElementsAre());
  EXPECT_THAT(found_on("trn1.32xlarge", {}, {}), ElementsAre("not_checked"));
  for (const char* driver : {"2.24.7.0", "2.27.4.0", "2.28.0.0", "2.30.2.0"}) {
    EXPECT_THAT(found_on("trn1.2xlarge", [&](CheckedNode& node) { node.host.driver(driver); }, {}), ElementsAre())
        << driver;
  }
}

TEST(CheckFindings, Driver) {
  expect_found("driver_missing", "trn1.32xlarge", without(sim::Part::driver));
}

TEST(CheckFindings, DriverOfAnotherChip) {
  const auto newer = [](CheckedNode& node) {
    node.host.without(sim::Part::driver).file("sys/module/neuron/version", "2.27.4.0\n");
  };
  expect_found("driver_wrong_for_chip", "inf1.6xlarge", newer);
  const auto right = [](CheckedNode& node) {
    node.host.without(sim::Part::driver).file("sys/module/neuron/version", "2.24.7.0\n");
  };
  expect_found("driver_shows_no_device", "inf1.6xlarge", right);
}

TEST(CheckFindings, Layout) {
  expect_found("layout_unknown", "trn2.48xlarge", [](CheckedNode& node) { node.host.driver("2.31.7.0"); });
  expect_found("driver_old", "trn1.2xlarge", {}, [](CheckedNode& node) {
    for (const char* part : {"info", "stats", "neuron_core0", "neuron_core1"}) {
      node.erase(std::string(kDevices) + "neuron0/" + part);
    }
    node.erase(std::string(kDevices) + "neuron0/fw_api_version");
    node.erase(std::string(kDevices) + "neuron0/fw_build");
    node.host.set("host", "driver_version=2.6.0.0");
  });
}

TEST(CheckFindings, Devices) {
  expect_found("devices_missing", "trn1.32xlarge", [](CheckedNode& node) { node.host.missing({3}); });
  expect_found("device_node_missing", "trn1.32xlarge", {}, set("neuron3", "drop-node"));
  expect_found("instance_type_unknown", "trn1.32xlarge", {}, set("host", "instance_type=trn9.48xlarge"));
}

TEST(CheckFindings, DevicesThatDoNotFit) {
  const std::string facts = std::string(kDevices) + "neuron4/info/";
  // A chip of another name is also missed the health files that such a chip has.
  EXPECT_THAT(found_on("trn1.32xlarge", file(facts + "architecture/device_name", "Trainium2\n"), {}),
              ::testing::Contains("devices_differ"));
  expect_found("devices_differ", "trn1.32xlarge", file(facts + "architecture/arch_type", "NDv3\n"));
  expect_found("devices_differ", "trn1.32xlarge", file(std::string(kDevices) + "neuron4/core_count", "1"));
  expect_found(
      "address_twice", "trn1.32xlarge",
      file("neuron-ioctl/neuron4.json", R"({"bdf": "0000:10:1b.0", "apps": [], "logical_to_physical": [0, 1]})"));
  expect_found("serial_twice", "trn1.32xlarge", {}, [](CheckedNode& node) {
    for (const char* device : {"neuron4", "neuron9"}) node.host.set(device, "serial_number=19fcda00f5ff6eb9");
  });
  expect_found("resets_failed", "trn1.32xlarge", {}, set("neuron4/core1", "reset_fail_count=2"));
}

TEST(CheckFindings, ChipsOfAnotherFamilyThanTheTypes) {
  const auto codes = found_on("trn2.3xlarge", {}, set("host", "instance_type=trn1.2xlarge"));
  EXPECT_THAT(codes, ::testing::Contains("chip_unexpected"));
}

TEST(CheckFindings, AResetCountThatCannotBeReadIsNotZero) {
  CheckedNode node("trn1.2xlarge");
  node.host.write();
  node.host.set("neuron0/core1", "garbage", "reset_fail_count");
  EXPECT_THAT(node.codes(), ElementsAre("not_checked"));
}

TEST(CheckFindings, NothingToServe) {
  EXPECT_THAT(found_on("p5.48xlarge", without(sim::Part::efa), set("host", "instance_type=m7i.large")),
              ElementsAre("nothing_to_serve"));
}

TEST(CheckFindings, Health) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"sram_ecc_uncorrected", "sram_ecc_uncorrected=1"},
      {"mem_ecc_uncorrected", "mem_ecc_uncorrected=1"},
      {"mem_ecc_repairable_uncorrected", "mem_ecc_repairable_uncorrected=1"},
      {"unhealthy_components", "unhealthy_components=hbm,link_efa"},
      {"device_unreachable", "unhealthy_components=device_unreachable"},
      {"device_invalid", "reset=2"},
      {"resetting", "reset=0"},
  };
  for (const auto& [code, action] : faults) expect_found(code, "trn2.3xlarge", {}, set("neuron0", action));
  expect_found("core_errors", "trn2.3xlarge", {}, set("neuron0/core1", "hw_dma_abort_error=2"));
}

TEST(CheckFindings, HealthThatCannotBeRead) {
  EXPECT_THAT(found_on("trn2.3xlarge", {}, set("neuron0", "mem_ecc_uncorrected=65535")),
              ElementsAre("reads_all_ones", "not_checked"));
  for (const char* file : {"sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected"}) {
    for (const char* how : {"garbage", "remove"}) {
      const auto broken = [&](CheckedNode& node) { node.host.set("neuron4", how, file); };
      EXPECT_THAT(found_on("trn1.32xlarge", {}, broken), ElementsAre("signal_unreadable", "not_checked")) << file;
    }
  }
  const auto silent = [](CheckedNode& node) {
    node.erase(std::string(kDevices) + "neuron4/stats");
    node.erase(std::string(kDevices) + "neuron4/reset");
    for (const char* core : {"0", "1"}) {
      node.erase(std::string(kDevices) + "neuron4/neuron_core" + core + "/stats");
    }
  };
  EXPECT_THAT(found_on("trn1.32xlarge", {}, silent), ElementsAre("no_signals", "unreadable", "not_checked"));
}

TEST(CheckFindings, HealthFilesThatNoDeviceHas) {
  const std::vector<std::pair<std::string, int>> types = {
      {"trn1.32xlarge", 16}, {"inf2.48xlarge", 12}, {"trn2.48xlarge", 16}};
  for (const auto& [type, devices] : types) {
    const int count = devices;
    const auto gone = [count](CheckedNode& node) {
      for (int index = 0; index < count; ++index) {
        node.erase(std::string(kDevices) + "neuron" + std::to_string(index) + "/stats/hardware");
      }
    };
    EXPECT_THAT(found_on(type, {}, gone), ::testing::Contains("signals_missing")) << type;
  }
  expect_found("core_missing", "trn2.3xlarge", {},
               [](CheckedNode& node) { node.erase(std::string(kDevices) + "neuron0/neuron_core3"); });
}

TEST(CheckFindings, Efa) {
  EXPECT_THAT(found_on("trn1.2xlarge", {}, set("host", "instance_type=trn2.3xlarge")),
              ElementsAre("chip_unexpected", "efas_none_attached"));
}

TEST(CheckFindings, EfaInterfaces) {
  expect_found("efas_missing", "trn1.32xlarge", {}, set("rdmap16s25", "vanish"));
  expect_found("efa_driver_unbound", "trn1.32xlarge", {}, set("rdmap16s25", "unbind"));
  expect_found("ib_uverbs_not_loaded", "trn1.32xlarge", without(sim::Part::uverbs));
  expect_found("verbs_missing", "trn1.32xlarge", {}, set("rdmap16s25", "infiniband_verbs/uverbs1/ibdev=nobody"));
  expect_found("verbs_node_missing", "trn1.32xlarge", {}, set("rdmap16s25", "drop-node"));
  expect_found("p2p_not_neuron", "trn1.32xlarge", {}, set("rdmap16s25", "p2p="));
  expect_found("rdma_device_missing", "trn1.32xlarge", {}, [](CheckedNode& node) {
    node.erase("sys/class/infiniband/rdmap16s25");
    node.erase("sys/bus/pci/devices/0000:10:19.0/infiniband");
  });
}

TEST(CheckFindings, Settings) {
  expect_found("lnc_file_malformed", "trn2.48xlarge", file("opt/aws/neuron/logical_nc_config", "LNC=two\n"));
  expect_found("lnc_unsupported", "trn1.2xlarge",
               file("opt/aws/neuron/logical_nc_config", "NEURON_LOGICAL_NC_CONFIG=2\n"));
  const std::string pages = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
  expect_found("huge_pages_none", "trn1.32xlarge", file(pages, "0\n"));
  expect_found("huge_pages_few", "trn1.32xlarge", file(pages, "5128\n"));
  expect_found("cdi_off", "trn1.32xlarge", file("etc/containerd/config.toml", "version = 2\n"));
  expect_found("unreadable", "trn1.32xlarge", {},
               [](CheckedNode& node) { node.host.set("neuron3", "garbage", "info/serial_number"); });
}

TEST(CheckFindings, LncChangedWhileCoresAreHeld) {
  // Cores 4 and 5 beside /dev/neuron1: given out with LNC 2.
  expect_found("lnc_changed_while_held", "trn2.48xlarge",
               file("opt/aws/neuron/logical_nc_config", "NEURON_LOGICAL_NC_CONFIG=1\n"), [](CheckedNode& node) {
                 node.touch("device-plugins/kubelet_internal_checkpoint",
                            R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c",)"
                            R"("ResourceName":"aws.amazon.com/neuroncore","DeviceIDs":{"0":["4","5"]},)"
                            R"("AllocResp":"GiAKDC9kZXYvbmV1cm9uMRIML2Rldi9uZXVyb24xGgJydw=="}],)"
                            R"("RegisteredDevices":{}},"Checksum":1})");
               });
}

Change listed(const std::string& devices, const std::string& cores) {
  return [=](CheckedNode& node) {
    node.touch("device-plugins/kubelet_internal_checkpoint",
               R"({"Data":{"PodDeviceEntries":[],"RegisteredDevices":{"aws.amazon.com/neuron":[)" + devices +
                   R"(],"aws.amazon.com/neuroncore":[)" + cores + R"(]}},"Checksum":1})");
  };
}

TEST(CheckFindings, TwoNamesOfTheSameDevices) {
  expect_found("two_names", "trn1.32xlarge", {}, listed(R"("0","1","2")", R"("3","4","30")"));
  EXPECT_THAT(found_on("trn1.32xlarge", {}, listed(R"("2","3")", R"("0","1","2","3")")),
              ::testing::Not(::testing::Contains("two_names")))
      << "a split";
  EXPECT_THAT(found_on("trn1.32xlarge", {}, listed("", R"("0")")), ::testing::Not(::testing::Contains("two_names")));
}

TEST(CheckFindings, Kubelet) {
  const auto remove = [](const std::string& path) -> Change {
    return [=](CheckedNode& node) { std::filesystem::remove_all(node.kubelet + path); };
  };
  expect_found("kubelet_dir_missing", "trn1.2xlarge", {}, remove(""));
  expect_found("device_plugins_dir_missing", "trn1.2xlarge", {}, remove("/device-plugins"));
  expect_found("kubelet_socket_missing", "trn1.2xlarge", {}, remove("/device-plugins/kubelet.sock"));
  expect_found("pod_resources_missing", "trn1.2xlarge", {}, remove("/pod-resources"));
}

TEST(CheckFindings, OtherPlugins) {
  const auto socket = [](const std::string& name) -> Change {
    return [=](CheckedNode& node) { node.touch("device-plugins/" + name); };
  };
  expect_found("rival_plugin", "trn1.32xlarge", {}, socket("aws-efa-device-plugin.sock"));
  expect_found("nvidia_takes_verbs", "p5.48xlarge", {}, socket("nvidia-gpu.sock"));
  expect_found("nvidia_takes_verbs", "p5.48xlarge", {}, [](CheckedNode& node) {
    node.touch("device-plugins/kubelet_internal_checkpoint",
               R"({"Data":{"PodDeviceEntries":[{"PodUID":"1-2","ContainerName":"main","ResourceName":"nvidia.com/gpu",)"
               R"("DeviceIDs":{"-1":["GPU-1"]},"AllocResp":"GhgKFi9kZXYvaW5maW5pYmFuZC91dmVyYnMw"}]}})");
  });
}

}  // namespace
}  // namespace neuron::agent::test
