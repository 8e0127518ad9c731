#include "tools/neuron-gather/collector.h"

#include <array>

namespace neuron::gather {
namespace {

constexpr std::array kRules = {
    Rule{"NOTE", Take::text},
    // The instance. Nothing of DMI that only root may read, such as serial numbers.
    Rule{"sys/class/dmi/id", Take::folder},
    Rule{"sys/devices/virtual/dmi/id/product_name"},
    Rule{"sys/devices/virtual/dmi/id/board_asset_tag"},
    Rule{"sys/devices/virtual/dmi/id/board_vendor"},
    Rule{"sys/devices/virtual/dmi/id/sys_vendor"},
    Rule{"opt/aws/neuron/logical_nc_config"},
    // Modules and their devices.
    Rule{"sys/module/neuron", Take::folder},
    Rule{"sys/module/efa", Take::folder},
    Rule{"sys/module/ib_core", Take::folder},
    Rule{"sys/module/ib_uverbs", Take::folder},
    Rule{"sys/module/nvidia", Take::folder},
    Rule{"sys/module/neuron/version"},
    Rule{"sys/module/neuron/initstate"},
    Rule{"sys/module/neuron/parameters/*"},
    Rule{"sys/module/efa/version"},
    Rule{"sys/module/efa/initstate"},
    Rule{"sys/module/ib_core/initstate"},
    Rule{"sys/module/ib_uverbs/initstate"},
    Rule{"sys/module/nvidia/version"},
    Rule{"sys/class/neuron_device", Take::tree},
    Rule{"sys/class/neuron_device/neuron#", Take::tree},
    Rule{"dev/neuron#", Take::node},
    Rule{"dev/kmsg", Take::kernel_log},
    // RDMA. The link of a class entry names its PCI function.
    Rule{"sys/class/infiniband", Take::folder},
    Rule{"sys/class/infiniband/*/device", Take::folder},
    Rule{"sys/class/infiniband/*/fw_ver"},
    Rule{"sys/class/infiniband/*/node_guid"},
    Rule{"sys/class/infiniband/*/node_type"},
    Rule{"sys/class/infiniband/*/sys_image_guid"},
    Rule{"sys/class/infiniband/*/hw_counters/*"},
    Rule{"sys/class/infiniband/*/ports/#/gids/0"},
    Rule{"sys/class/infiniband/*/ports/#/hw_counters/*"},
    Rule{"sys/class/infiniband/*/ports/#/lid"},
    Rule{"sys/class/infiniband/*/ports/#/link_layer"},
    Rule{"sys/class/infiniband/*/ports/#/phys_state"},
    Rule{"sys/class/infiniband/*/ports/#/rate"},
    Rule{"sys/class/infiniband/*/ports/#/state"},
    Rule{"sys/class/infiniband_verbs", Take::folder},
    Rule{"sys/class/infiniband_verbs/abi_version"},
    Rule{"sys/class/infiniband_verbs/uverbs#/abi_version"},
    Rule{"sys/class/infiniband_verbs/uverbs#/dev"},
    Rule{"sys/class/infiniband_verbs/uverbs#/device", Take::folder},
    Rule{"sys/class/infiniband_verbs/uverbs#/ibdev"},
    Rule{"dev/infiniband", Take::folder},
    Rule{"dev/infiniband/uverbs#", Take::node},
    // PCI: all functions, since hwloc needs the bridges, and a check the neighbours.
    Rule{"sys/bus/pci/devices", Take::folder},
    Rule{"sys/bus/pci/devices/*/class"},
    Rule{"sys/bus/pci/devices/*/config", Take::config},
    Rule{"sys/bus/pci/devices/*/current_link_speed"},
    Rule{"sys/bus/pci/devices/*/current_link_width"},
    Rule{"sys/bus/pci/devices/*/device"},
    Rule{"sys/bus/pci/devices/*/driver", Take::folder},
    Rule{"sys/bus/pci/devices/*/infiniband/*", Take::folder},
    Rule{"sys/bus/pci/devices/*/infiniband_verbs/*", Take::folder},
    Rule{"sys/bus/pci/devices/*/local_cpulist"},
    Rule{"sys/bus/pci/devices/*/local_cpus"},
    Rule{"sys/bus/pci/devices/*/numa_node"},
    Rule{"sys/bus/pci/devices/*/p2p"},
    Rule{"sys/bus/pci/devices/*/revision"},
    Rule{"sys/bus/pci/devices/*/subsystem_device"},
    Rule{"sys/bus/pci/devices/*/subsystem_vendor"},
    Rule{"sys/bus/pci/devices/*/vendor"},
    // Processors and memory.
    Rule{"sys/devices/system/cpu/online"},
    Rule{"sys/devices/system/cpu/possible"},
    Rule{"sys/devices/system/cpu/present"},
    Rule{"sys/devices/system/cpu/cpu#/online"},
    Rule{"sys/devices/system/cpu/cpu#/topology/*"},
    Rule{"sys/devices/system/node/has_*"},
    Rule{"sys/devices/system/node/online"},
    Rule{"sys/devices/system/node/possible"},
    Rule{"sys/devices/system/node/node#/cpulist"},
    Rule{"sys/devices/system/node/node#/cpumap"},
    Rule{"sys/devices/system/node/node#/distance"},
    Rule{"sys/devices/system/node/node#/meminfo"},
    Rule{"sys/devices/system/node/node#/hugepages/*/*_hugepages"},
    Rule{"sys/kernel/mm/hugepages/*/*_hugepages"},
    // The kubelet's sockets as empty files. Not its checkpoint, which holds the environment of containers.
    Rule{"var/lib/kubelet/device-plugins", Take::folder},
    Rule{"var/lib/kubelet/device-plugins/*.sock", Take::node},
    Rule{"var/lib/kubelet/pod-resources", Take::folder},
    Rule{"var/lib/kubelet/pod-resources/kubelet.sock", Take::node},
    Rule{"etc/containerd/config.toml", Take::containerd},
    Rule{"proc/cpuinfo", Take::large},
    Rule{"proc/devices"},
    Rule{"proc/meminfo"},
    Rule{"proc/stat", Take::large},
    Rule{"proc/sys/kernel/osrelease"},
    Rule{"proc/sys/vm/nr_hugepages"},
};

constexpr std::array<std::string_view, 3> kKernelEntries = {"power", "subsystem", "uevent"};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

std::span<const std::string_view> kernel_entries() {
  return kKernelEntries;
}

bool matches(std::string_view pattern, std::string_view name) {
  const auto at = pattern.find_first_of("*#");
  if (at == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, at);
  const std::string_view after = pattern.substr(at + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return false;
  name = name.substr(before.size(), name.size() - before.size() - after.size());
  return pattern[at] == '*' || is_number(name);
}

}  // namespace neuron::gather
