#include "tools/neuron-sim/type_table.h"

#include <array>
#include <cstdio>

#include "agent/core/catalogue.h"

namespace neuron::sim {
namespace {

std::string row(const core::InstanceType& type) {
  const int cores = type.device_count * type.physical_cores_per_device / type.default_lnc;
  const std::string shape = type.family ? std::string(core::to_string(type.shape)) : "-";
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "%-20s %-12s %7d %6d %5d %5d  %s\n", type.name.c_str(),
                type.family ? std::string(model::to_string(*type.family)).c_str() : "-", type.device_count, cores,
                type.efa_count, static_cast<int>(type.numa.size()), shape.c_str());
  return text.data();
}

}  // namespace

std::string type_table() {
  std::string text = "TYPE                 CHIP         DEVICES  CORES  EFAS  NUMA  TOPOLOGY\n";
  for (const auto& type : core::all_instance_types()) text += row(type);
  return text;
}

}  // namespace neuron::sim
