#include "tools/neuron-sim/machine_plan.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "agent/base/parse.h"
#include "tools/neuron-sim/addresses.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/near_match.h"

namespace neuron::sim {
namespace {

constexpr std::uint32_t kNeuronClass = 0x088000;
constexpr std::uint32_t kEthernetClass = 0x020000;
constexpr std::uint32_t kInfinibandClass = 0x020700;
constexpr std::uint32_t kNvmeClass = 0x010802;

std::uint16_t pci_id_of(model::Family family) {
  switch (family) {
    case model::Family::inferentia:
      return 0x7064;
    case model::Family::inferentia2:
      return 0x7264;
    case model::Family::trainium1:
      return 0x7164;
    case model::Family::trainium2:
      return 0x7364;
    case model::Family::trainium3:
      return 0x7564;
  }
  return 0;
}

std::string hex64(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

Result<const core::InstanceType*> find_type(const std::string& name) {
  if (const auto* type = core::find_instance_type(name)) return type;
  std::vector<std::string> names;
  for (const auto& type : core::all_instance_types()) names.push_back(type.name);
  std::string message = "unknown instance type \"" + printable(name) + "\"";
  const auto near = near_matches(name, names);
  for (std::size_t i = 0; i < near.size(); ++i) message += (i == 0 ? "; did you mean " : ", ") + near[i];
  return fail(ErrorCode::invalid_argument, message + (near.empty() ? "" : "?") + " (neuron-sim node --list shows all)");
}

Result<void> check_options(const HostPlan& plan, const core::InstanceType& type) {
  for (const int index : plan.missing) {
    if (index < 0 || index >= type.device_count) {
      return fail(ErrorCode::invalid_argument, "missing device " + std::to_string(index) + ": " + type.name + " has " +
                                                   std::to_string(type.device_count) + " devices, numbered from 0");
    }
  }
  for (const auto& [path, text] : plan.files) {
    if (!stays_below(path))
      return fail(ErrorCode::invalid_argument, "file " + printable(path) + " leads out of the host");
  }
  if (plan.lnc && (!type.family || *plan.lnc < 1 || *plan.lnc > type.default_lnc)) {
    return fail(ErrorCode::invalid_argument, "LNC " + std::to_string(*plan.lnc) + " is not possible on " + type.name +
                                                 ": 1 or 2 on Trainium2 and 3, 1 on others with Neuron");
  }
  return {};
}

// What connected_devices can say (docs/reference/driver.md#connected-devices): a static table, chosen by how many
// devices there are. Only Inf1 reads its links.
std::vector<int> printed_neighbours(const MachinePlan& machine, int index, std::size_t present) {
  const auto& type = *machine.type;
  auto neighbours = type.devices[static_cast<std::size_t>(index)].neighbours;
  if (type.family == model::Family::inferentia) {
    std::erase_if(neighbours, [&](int other) {
      return std::count(machine.options.missing.begin(), machine.options.missing.end(), other) > 0;
    });
    return neighbours;
  }
  const bool inf2 = type.family == model::Family::inferentia2;
  const bool table = inf2 ? present == 12 || present == 6 : present > 0 && present % 16 == 0;
  if (!table || static_cast<int>(present) != type.device_count) return {};
  return neighbours;
}

void add_neurons(MachinePlan& machine, const std::vector<core::EfaFacts>& efas) {
  const auto& type = *machine.type;
  const auto& missing = machine.options.missing;
  const auto places = place_devices(type, efas);
  for (int index = 0; index < type.device_count; ++index) {
    if (std::count(missing.begin(), missing.end(), index) > 0) continue;
    const int numa_node = type.devices[static_cast<std::size_t>(index)].numa_node;
    const auto& bdf = places[static_cast<std::size_t>(index)];
    NeuronFunction neuron;
    neuron.index = index;
    neuron.serial = hex64(stable_number(type.name + "/neuron" + std::to_string(index)));
    neuron.pci = {bdf,
                  sysfs_path(bdf, parent_of(bdf, efas), numa_node, machine.bridges),
                  0x1d0f,
                  pci_id_of(*type.family),
                  kNeuronClass,
                  numa_node,
                  machine.has_driver() ? "neuron-driver" : ""};
    machine.neurons.push_back(std::move(neuron));
  }
  for (auto& neuron : machine.neurons) {
    neuron.neighbours = printed_neighbours(machine, neuron.index, machine.neurons.size());
  }
}

std::string name_by_path(const model::Bdf& bdf) {
  std::string name = "rdma";
  if (bdf.domain > 0) name += "P" + std::to_string(bdf.domain);
  name += "p" + std::to_string(bdf.bus) + "s" + std::to_string(bdf.slot);
  return bdf.function == 0 ? name : name + "f" + std::to_string(bdf.function);
}

void add_rdma(MachinePlan& machine, const std::vector<core::EfaFacts>& efas) {
  int count = 0;
  for (const auto& efa : efas) {
    RdmaFunction rdma;
    rdma.name = machine.options.naming == RdmaNaming::by_path ? name_by_path(efa.bdf) : "efa_" + std::to_string(count);
    rdma.pci = {efa.bdf,        sysfs_path(efa.bdf, efa.pci_parent, efa.numa_node, machine.bridges),
                0x1d0f,         efa.pci_device_id,
                kEthernetClass, efa.numa_node,
                "efa"};
    machine.rdma.push_back(std::move(rdma));
    ++count;
  }
  // Two ConnectX that belong to the GPU board (docs/reference/topology.md#gpu-instances).
  if (machine.type->name == "p6-b200.48xlarge") {
    for (const std::uint8_t bus : {std::uint8_t{0x73}, std::uint8_t{0x74}}) {
      const model::Bdf bdf{0, bus, 0, 0};
      RdmaFunction rdma;
      rdma.name = "ibp" + std::to_string(bus) + "s0f0";
      rdma.is_efa = false;
      rdma.pci = {
          bdf,        sysfs_path(bdf, parent_of(bdf, efas), 1, machine.bridges), 0x15b3, 0x1021, kInfinibandClass, 1,
          "mlx5_core"};
      machine.rdma.push_back(std::move(rdma));
    }
  }
  std::sort(machine.rdma.begin(), machine.rdma.end(),
            [](const auto& a, const auto& b) { return a.pci.bdf < b.pci.bdf; });
}

// A permutation that moves every interface when their number is even, so that who joins by position is wrong.
void number_uverbs(std::vector<RdmaFunction>& rdma) {
  const int count = static_cast<int>(rdma.size());
  if (count == 0) return;
  int factor = 3;
  while (std::gcd(factor, count) != 1) factor += 2;
  for (int k = 0; k < count; ++k) rdma[static_cast<std::size_t>(k)].uverbs = (k * factor + 1) % count;
}

void add_others(MachinePlan& machine) {
  const auto add = [&](int slot, int device, std::uint32_t class_code, const char* driver) {
    const model::Bdf bdf{0, 0, static_cast<std::uint8_t>(slot), 0};
    machine.others.push_back({bdf, "sys/devices/pci0000:00/" + model::to_string(bdf), 0x1d0f,
                              static_cast<std::uint16_t>(device), class_code, -1, driver});
  };
  add(0x04, 0x8061, kNvmeClass, "nvme");
  add(0x05, 0xec20, kEthernetClass, "ena");
}

}  // namespace

std::uint64_t stable_number(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return hash ^ (hash >> 29U);
}

Result<MachinePlan> plan_machine(const HostPlan& plan) {
  MachinePlan machine;
  TRY_ASSIGN(machine.type, find_type(plan.instance_type));
  const auto& type = *machine.type;
  TRY(check_options(plan, type));
  machine.options = plan;
  auto& options = machine.options;
  options.instance_type = type.name;
  if (options.driver_version.empty()) {
    options.driver_version = type.family == model::Family::inferentia ? "2.24.7.0" : "2.30.2.0";
  }
  if (options.instance_id.empty()) options.instance_id = "i-0" + hex64(stable_number(type.name));
  TRY_ASSIGN(machine.driver, generation_of(options.driver_version));
  if (type.family) TRY(check_drives(machine.driver, *type.family));
  machine.platform = platform_of(type.name, machine.driver);
  if (options.ultraserver && machine.platform == Platform::standard) {
    return fail(ErrorCode::invalid_argument,
                type.name + " with driver " + options.driver_version + " is never part of an UltraServer");
  }

  const auto efas = place_efas(type);
  if (type.family) add_neurons(machine, efas);
  if (!options.without.contains(Part::efa)) {
    add_rdma(machine, efas);
    number_uverbs(machine.rdma);
  }
  add_others(machine);
  std::sort(machine.bridges.begin(), machine.bridges.end(),
            [](const auto& a, const auto& b) { return a.function.bdf < b.function.bdf; });
  return machine;
}

}  // namespace neuron::sim
