#include <fmt/format.h>

#include <initializer_list>

#include "agent/core/complete.h"
#include "tools/screen/panels.h"

namespace neuron::screen {
namespace {

using Bytes = std::optional<std::uint64_t>;

std::string device_key(const DeviceView& device) {
  return std::to_string(device.index);
}

std::string core_key(const DeviceView& device, const CoreView& core) {
  return fmt::format("{}/{}", device.index, core.position);
}

// Sum of some kinds over all parts.
template <typename Memory, typename Kind>
Bytes sum_of(const std::vector<Memory>& parts, std::initializer_list<Kind> kinds) {
  if (parts.empty()) return std::nullopt;
  Bytes sum = 0;
  for (const Memory& part : parts) {
    for (const Kind kind : kinds) core::add_bytes(sum, part[static_cast<std::size_t>(kind)]);
  }
  return sum;
}

TableRow tree_row(std::string key, std::string text, Role role, Bytes device, Bytes host) {
  return {std::move(key),
          {{std::move(text), role}, {memory_text(device), Role::good}, {memory_text(host), Role::good}}};
}

void add_core(Table& table, const ViewState& state, const DeviceView& device, const CoreView& core) {
  const std::string key = core_key(device, core);
  const bool open = state.expanded.contains(key);
  table.rows.push_back(tree_row(key, fmt::format("   [{}] NC{:2}", open ? '-' : '+', core.position), Role::plain,
                                core.device_bytes, core.host_bytes));
  if (!open) return;
  for (const MemoryKind& kind : device_kinds({core.kinds})) {
    TableRow row = tree_row(key + '/' + kind.name, "      " + kind.name, Role::dim, kind.bytes, std::nullopt);
    row.cells.back().text.clear();
    table.rows.push_back(std::move(row));
  }
}

void add_device(Table& table, const ViewModel& model, const ViewState& state, const DeviceView& device) {
  const std::string key = device_key(device);
  const bool open = state.expanded.contains(key);
  TableRow row = tree_row(key, fmt::format("[{}] ND{:2}", open ? '-' : '+', device.index), Role::plain,
                          device.device_bytes, device.host_bytes);
  row.cells.push_back({memory_text(device.memory_size), Role::dim});
  row.cells.push_back({pods_of_device(model, device), Role::dim});
  table.rows.push_back(std::move(row));
  if (!open) return;
  for (const CoreView& core : device.cores) add_core(table, state, device, core);
}

}  // namespace

std::vector<MemoryKind> device_kinds(const std::vector<model::DeviceMemory>& parts) {
  using Kind = model::DeviceMemoryKind;
  return {{"Tensors", sum_of(parts, {Kind::tensors})},
          {"Constants", sum_of(parts, {Kind::constants})},
          {"Model Code", sum_of(parts, {Kind::model_code})},
          {"Runtime Memory", sum_of(parts, {Kind::runtime_memory})},
          {"Model Scratchpad", sum_of(parts, {Kind::model_shared_scratchpad, Kind::nonshared_scratchpad})},
          {"Other", sum_of(parts, {Kind::driver_memory, Kind::collectives, Kind::notifications, Kind::dma_rings,
                                   Kind::uncategorized})}};
}

std::vector<MemoryKind> host_kinds(const std::vector<model::HostMemory>& parts) {
  using Kind = model::HostMemoryKind;
  return {{"Tensors", sum_of(parts, {Kind::tensors})},
          {"Constants", sum_of(parts, {Kind::constants})},
          {"DMA Buffers", sum_of(parts, {Kind::dma_buffers})},
          {"App. Memory", sum_of(parts, {Kind::application_memory})},
          {"Other", sum_of(parts, {Kind::driver_memory, Kind::notifications, Kind::dma_rings, Kind::uncategorized})}};
}

Table memory_table(const ViewModel& model, const ViewState& state) {
  Table table;
  table.columns = {{""}, {"Device Memory", Align::right}, {"Host Memory", Align::right}, {"Size", Align::right, 1}};
  if (!model.pods.empty()) table.columns.push_back({"Pods", Align::left, 2, true});
  for (const DeviceView* device : shown_devices(model, state)) add_device(table, model, state, *device);
  if (table.rows.empty()) table.note = model.no_devices.empty() ? "no device passes the filter" : model.no_devices;
  return table;
}

std::vector<std::string> memory_nodes(const ViewModel& model, const ViewState& state) {
  std::vector<std::string> keys;
  for (const DeviceView* device : shown_devices(model, state)) {
    keys.push_back(device_key(*device));
    for (const CoreView& core : device->cores) keys.push_back(core_key(*device, core));
  }
  return keys;
}

}  // namespace neuron::screen
