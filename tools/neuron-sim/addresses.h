#pragma once

#include <string>
#include <vector>

#include "tools/neuron-sim/machine_plan.h"

// Where functions sit on PCI. The catalogue knows what was seen on real machines; the rest is made up by the same
// rules.
namespace neuron::sim {

// An EFA interface with its place: the catalogue's, or a made-up one where nobody published any.
[[nodiscard]] std::vector<core::EfaFacts> place_efas(const core::InstanceType& type);

// BDF of each device index, device_count entries.
[[nodiscard]] std::vector<model::Bdf> place_devices(const core::InstanceType& type,
                                                    const std::vector<core::EfaFacts>& efas);

// "pci0000:10", or the switch port ("0000:b9:02.1") when the type's EFAs sit behind switches and this bus belongs to
// one (docs/reference/topology.md#trn2-eight-switches: port number i = slot * 8 + function, device bus = port bus + 2 +
// i).
[[nodiscard]] std::string parent_of(const model::Bdf& bdf, const std::vector<core::EfaFacts>& efas);

// sysfs path of a function below `parent`, adding the bridges on the way to `bridges` unless they are there; a bridge
// that is there learns of the further bus. Switch ports get an upstream port and a root port on the two buses before.
[[nodiscard]] std::string sysfs_path(const model::Bdf& bdf, const std::string& parent, int numa_node,
                                     std::vector<PciBridge>& bridges);

}  // namespace neuron::sim
