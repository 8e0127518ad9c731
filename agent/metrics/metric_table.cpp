#include "agent/metrics/metric_table.h"

#include <array>

namespace neuron::metrics {

std::string_view to_string(MetricType type) {
  switch (type) {
    case MetricType::counter:
      return "counter";
    case MetricType::gauge:
      return "gauge";
    case MetricType::info:
      return "info";
    case MetricType::histogram:
      return "histogram";
  }
  return "gauge";
}

std::span<const MetricGroup> metric_groups() {
  static const std::array kGroups = {
      MetricGroup{"Names of neuron-monitor", kInstanceLabels,
                  "Files are below `sys/class/neuron_device/neuron<N>/`, unless they begin with `proc`.",
                  neuron_monitor_metrics()},
      MetricGroup{"Devices", "neuron_device_index", "Files are below `sys/class/neuron_device/neuron<N>/`.",
                  device_metrics()},
      MetricGroup{
          "Cores", "neuroncore, neuron_device_index",
          "Files are below `sys/class/neuron_device/neuron<N>/neuron_core<M>/` of each physical core behind the "
          "logical one.",
          core_metrics()},
      MetricGroup{"EFA interfaces", "device, bdf", "Files are below `sys/bus/pci/devices/<bdf>/`.", efa_metrics()},
      MetricGroup{"EFA counters", "device, port",
                  "Names of the EFA node exporter. Files are below `sys/class/infiniband/<device>/`; before EFA driver "
                  "1.14 all are in one of the two folders.",
                  efa_counter_metrics()},
      MetricGroup{"Kernel log", "",
                  "Of lines `NEURON_HW_ERR=` in `dev/kmsg` since the driver was loaded, if the agent reads it "
                  "(`--kernel-log on`).",
                  kernel_log_metrics()},
      MetricGroup{"The agent", "", "All but the first are counted by the process since it started.", agent_metrics()},
  };
  return kGroups;
}

}  // namespace neuron::metrics
