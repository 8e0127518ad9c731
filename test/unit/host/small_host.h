#pragma once

#include <string>

#include "test/unit/host/temp_tree.h"

namespace neuron::host {

// Generations of the Neuron driver's files, enough of each for the reader.
enum class Generation { bare, inf1_2_24, trn1_2_27, trn2_2_28, trn2_2_30, moved };

// One device as the driver shows it: a link in the class folder to a virtual device. Two cores.
inline void write_device(TempTree& tree, int index, Generation generation) {
  const std::string name = "neuron" + std::to_string(index);
  const std::string path = "sys/devices/virtual/neuron_device/" + name;
  tree.write(path + "/dev", "240:" + std::to_string(index) + "\n");
  tree.link("sys/class/neuron_device/" + name, "../../devices/virtual/neuron_device/" + name);
  if (generation == Generation::moved) return tree.write(path + "/telemetry/ecc", "0\n");
  tree.write(path + "/core_count", "2");
  tree.write(path + "/connected_devices", "\n");
  tree.write(path + "/reset", "1\n");
  if (generation == Generation::bare) return;
  const bool first = generation == Generation::inf1_2_24;
  tree.write(path + "/info/architecture/device_name", first ? "Inferentia\n" : "Trainium2\n");
  tree.write(path + "/info/architecture/arch_type", first ? "NDv1\n" : "NDv3\n");
  for (const char* core : {"/neuron_core0/stats/", "/neuron_core1/stats/"}) {
    tree.write(path + core + "memory_usage/device_mem/total", "1024\n");
    for (const char* counter : {"hw_error", "hw_hbm_ue_error", "hw_nc_ue_error", "hw_dma_abort_error"}) {
      tree.write(path + core + "status/" + counter + "/total", "0\n");
    }
  }
  if (first) return;
  tree.write(path + "/info/serial_number", "19fcda00f5ff6eb" + std::to_string(index % 10) + "\n");
  for (const char* counter : {"sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected"}) {
    tree.write(path + "/stats/hardware/" + counter, "0\n");
  }
  const std::string health = path + "/stats/hardware/health_status/";
  if (generation == Generation::trn2_2_28) {
    for (const char* counter :
         {"hbm_ecc_err_count", "repairable_hbm_ecc_err_count", "sram_ecc_err_count", "hw_error_event"}) {
      tree.write(health + counter, "2\n");
    }
  }
  if (generation != Generation::trn2_2_30) return;
  tree.write(health + "unhealthy_components", "\n");
  tree.write(health + "healthcheck_heartbeat", "17\n");
  tree.write(health + "hw_error_event", "0\n");
  tree.write(path + "/stats/hardware/sram_ecc_corrected", "5\n");
  tree.write(path + "/stats/hardware/mem_ecc_corrected", "0\n");
}

// One PCI function below `parent` ("pci0000:10", or "pci0000:b8/0000:b9:02.1").
inline void write_function(TempTree& tree, const std::string& parent, const std::string& bdf,
                           const std::string& device_id, const std::string& vendor = "0x1d0f") {
  const std::string path = "sys/devices/" + parent + '/' + bdf;
  tree.write(path + "/vendor", vendor + "\n");
  tree.write(path + "/device", device_id + "\n");
  tree.write(path + "/numa_node", "1\n");
  tree.write(path + "/local_cpulist", "2-3\n");
  tree.write(path + "/local_cpus", "0000000c\n");
  tree.link("sys/bus/pci/devices/" + bdf, "../../../devices/" + parent + '/' + bdf);
}

// An EFA function with its RDMA device and, for `uverbs` >= 0, its verbs node.
inline void write_efa(TempTree& tree, const std::string& parent, const std::string& bdf, const std::string& name,
                      int uverbs) {
  write_function(tree, parent, bdf, "0xefa1");
  const std::string path = "sys/devices/" + parent + '/' + bdf;
  tree.folder("sys/bus/pci/drivers/efa");
  tree.link(path + "/driver", "/sys/bus/pci/drivers/efa");
  tree.write(path + "/p2p", "NEURON\n");
  tree.link(path + "/infiniband/" + name + "/device", "../../../" + bdf);
  tree.link("sys/class/infiniband/" + name, "../../devices/" + parent + '/' + bdf + "/infiniband/" + name);
  if (uverbs < 0) return;
  const std::string node = "uverbs" + std::to_string(uverbs);
  tree.write("sys/class/infiniband_verbs/abi_version", "6\n");
  tree.write("sys/class/infiniband_verbs/" + node + "/ibdev", name + "\n");
  tree.write("dev/infiniband/" + node, "");
}

}  // namespace neuron::host
