#include "tools/neuron-sim/trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "agent/base/parse.h"
#include "agent/core/typical_host.h"
#include "tools/neuron-sim/host_directory.h"

namespace neuron::sim {
namespace {

model::Bdf make_bdf(int bus, int slot, int function = 0) {
  return {0, static_cast<std::uint8_t>(bus), static_cast<std::uint8_t>(slot), static_cast<std::uint8_t>(function)};
}

PciBridge& bridge_at(std::vector<PciBridge>& bridges, const model::Bdf& bdf, const std::string& path, int numa_node) {
  const auto found = std::ranges::find(bridges, bdf, [](const PciBridge& bridge) { return bridge.function.bdf; });
  if (found != bridges.end()) return *found;
  return bridges.emplace_back(PciBridge{{bdf, path, 0x1d0f, 0x0200, 0x060400, numa_node, "pcieport"}, 0, 0});
}

void extend(PciBridge& bridge, int secondary, int last) {
  bridge.secondary_bus = static_cast<std::uint8_t>(secondary);
  bridge.subordinate_bus = std::max(bridge.subordinate_bus, static_cast<std::uint8_t>(last));
}

// sysfs path of a function below `parent`. Adds the bridges on the way to `bridges`, or extends their bus ranges.
// Switch ports get an upstream port and a root port on the two buses before.
std::string sysfs_path(const model::Bdf& bdf, const std::string& parent, int numa_node,
                       std::vector<PciBridge>& bridges) {
  const std::string devices = "sys/devices/";
  const auto port = model::parse_bdf(parent);
  if (!port) return devices + parent + "/" + model::to_string(bdf);
  if (core::is_on_root_bus(*port)) {
    const std::string path = devices + core::host_bridge_of(*port) + "/" + model::to_string(*port);
    extend(bridge_at(bridges, *port, path, numa_node), bdf.bus, bdf.bus);
    return path + "/" + model::to_string(bdf);
  }
  const auto [root_port, upstream] = core::ports_above(*port);
  const std::string root_path = devices + core::host_bridge_of(root_port) + "/" + model::to_string(root_port);
  const std::string upstream_path = root_path + "/" + model::to_string(upstream);
  const std::string port_path = upstream_path + "/" + model::to_string(*port);
  extend(bridge_at(bridges, root_port, root_path, numa_node), upstream.bus, bdf.bus);
  extend(bridge_at(bridges, upstream, upstream_path, numa_node), port->bus, bdf.bus);
  extend(bridge_at(bridges, *port, port_path, numa_node), bdf.bus, bdf.bus);
  return port_path + "/" + model::to_string(bdf);
}

constexpr std::uint32_t kNeuronClass = 0x088000;
constexpr std::uint32_t kEthernetClass = 0x020000;
constexpr std::uint32_t kInfinibandClass = 0x020700;
constexpr std::uint32_t kNvmeClass = 0x010802;

constexpr std::uint16_t kPciIds[] = {0x7064, 0x7264, 0x7164, 0x7364, 0x7564};  // in the order of model::Family

Result<const core::InstanceType*> find_type(const std::string& name) {
  auto type = core::instance_type_called(name);
  if (type) return *type;
  return fail(type.error().code, type.error().message + " (neuron-sim node --list shows all)");
}

Result<void> check_options(const HostPlan& plan, const core::InstanceType& type) {
  for (const int index : plan.missing) {
    if (index < 0 || index >= type.device_count) {
      return fail(ErrorCode::invalid_argument, fmt::format("missing device {}: {} has {} devices, numbered from 0",
                                                           index, type.name, type.device_count));
    }
  }
  for (const auto& [path, text] : plan.files) {
    if (!stays_below(path)) {
      return fail(ErrorCode::invalid_argument, "file " + printable(path) + " leads out of the host");
    }
  }
  if (plan.lnc && (!type.family || *plan.lnc < 1 || *plan.lnc > type.default_lnc)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("LNC {} is not possible on {}: 1 or 2 on Trainium2 and 3, 1 on others with Neuron",
                            *plan.lnc, type.name));
  }
  return {};
}

// The neighbours in connected_devices (docs/reference/driver.md#connected-devices): a static table, chosen by the
// number of devices. Only Inf1 reads its links.
std::vector<int> printed_neighbours(const MachinePlan& machine, int index, std::size_t present) {
  const auto& type = *machine.type;
  auto neighbours = type.devices[static_cast<std::size_t>(index)].neighbours;
  if (type.family == model::Family::inferentia) {
    std::erase_if(neighbours, [&](int other) { return std::ranges::count(machine.options.missing, other) > 0; });
    return neighbours;
  }
  const bool inf2 = type.family == model::Family::inferentia2;
  const bool table = inf2 ? present == 12 || present == 6 : present > 0 && present % 16 == 0;
  if (!table || static_cast<int>(present) != type.device_count) return {};
  return neighbours;
}

void add_neurons(MachinePlan& machine, const core::InstancePlaces& places) {
  const auto& type = *machine.type;
  const auto& missing = machine.options.missing;
  for (int index = 0; index < type.device_count; ++index) {
    if (std::ranges::count(missing, index) > 0) continue;
    const int numa_node = type.devices[static_cast<std::size_t>(index)].numa_node;
    const auto& bdf = places.devices[static_cast<std::size_t>(index)];
    const std::string serial = fmt::format("{:016x}", stable_number(fmt::format("{}/neuron{}", type.name, index)));
    const std::string path = sysfs_path(bdf, core::pci_parent_of(bdf, places.efas), numa_node, machine.bridges);
    const std::uint16_t device = kPciIds[static_cast<std::size_t>(*type.family)];
    const std::string driver = machine.has_driver() ? "neuron-driver" : "";
    machine.neurons.push_back({index, serial, {}, {bdf, path, 0x1d0f, device, kNeuronClass, numa_node, driver}});
  }
  for (auto& neuron : machine.neurons) {
    neuron.neighbours = printed_neighbours(machine, neuron.index, machine.neurons.size());
  }
}

void add_rdma(MachinePlan& machine, const std::vector<core::EfaFacts>& efas) {
  for (std::size_t i = 0; i < efas.size(); ++i) {
    const core::EfaFacts& efa = efas[i];
    const bool by_path = machine.options.naming == RdmaNaming::by_path;
    const std::string name = by_path ? core::rdma_name_of(efa.bdf) : fmt::format("efa_{}", i);
    const std::string path = sysfs_path(efa.bdf, efa.pci_parent, efa.numa_node, machine.bridges);
    machine.rdma.push_back(
        {name, true, 0, {efa.bdf, path, 0x1d0f, efa.pci_device_id, kEthernetClass, efa.numa_node, "efa"}});
  }
  // Two ConnectX that belong to the GPU board (docs/reference/topology.md#gpu-instances).
  for (const int bus : {0x73, 0x74}) {
    if (machine.type->name != "p6-b200.48xlarge") break;
    const model::Bdf bdf = make_bdf(bus, 0);
    const std::string path = sysfs_path(bdf, core::pci_parent_of(bdf, efas), 1, machine.bridges);
    machine.rdma.push_back(
        {fmt::format("ibp{}s0f0", bus), false, 0, {bdf, path, 0x15b3, 0x1021, kInfinibandClass, 1, "mlx5_core"}});
  }
  std::ranges::sort(machine.rdma, {}, [](const RdmaFunction& rdma) { return rdma.pci.bdf; });
}

// A permutation that moves every interface when their number is even, so that a reader that joins by position is wrong.
void number_uverbs(std::vector<RdmaFunction>& rdma) {
  const int count = static_cast<int>(rdma.size());
  if (count == 0) return;
  int factor = 3;
  while (std::gcd(factor, count) != 1) factor += 2;
  for (int k = 0; k < count; ++k) rdma[static_cast<std::size_t>(k)].uverbs = (k * factor + 1) % count;
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
  if (options.instance_id.empty()) options.instance_id = fmt::format("i-0{:016x}", stable_number(type.name));
  TRY_ASSIGN(machine.driver, generation_of(options.driver_version));
  if (type.family) TRY(check_drives(machine.driver, *type.family));
  machine.platform = platform_of(type.name, machine.driver);
  if (options.ultraserver && machine.platform == Platform::standard) {
    return fail(ErrorCode::invalid_argument,
                type.name + " with driver " + options.driver_version + " is never part of an UltraServer");
  }

  const core::InstancePlaces places = core::places_of(type);
  if (type.family) add_neurons(machine, places);
  if (!options.without.contains(Part::efa)) {
    add_rdma(machine, places.efas);
    number_uverbs(machine.rdma);
  }
  const std::string root = "sys/devices/pci0000:00/";
  machine.others = {{make_bdf(0, 4), root + "0000:00:04.0", 0x1d0f, 0x8061, kNvmeClass, -1, "nvme"},
                    {make_bdf(0, 5), root + "0000:00:05.0", 0x1d0f, 0xec20, kEthernetClass, -1, "ena"}};
  std::ranges::sort(machine.bridges, {}, [](const PciBridge& bridge) { return bridge.function.bdf; });
  return machine;
}

}  // namespace neuron::sim
