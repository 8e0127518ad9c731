#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "agent/core/complete.h"
#include "tools/screen/panels.h"

namespace neuron::screen {
namespace {

std::optional<double> sum(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

constexpr int kOtherColumns = 30;  // name, newest and highest value, gaps
constexpr double kWholePercent = 100;

struct Line {
  std::string name;
  std::string series;
  double full = 0;  // top of the sparkline; 0 = its highest value
  std::string (*text)(std::optional<double>) = nullptr;
};

std::string percent(std::optional<double> value) {
  return percent_text(value, 1);
}

std::string memory(std::optional<double> value) {
  if (!value) return std::string(kUnknown);
  return memory_text(static_cast<std::uint64_t>(*value));
}

TableRow row_of(const Scene& scene, const Line& line, int width) {
  const auto values = scene.history.of(line.series);
  const std::optional<double> newest = values.empty() ? std::nullopt : values.back();
  std::optional<double> highest;
  for (const auto& value : values) {
    if (value) highest = std::max(highest.value_or(*value), *value);
  }
  return {line.series,
          {{line.name, Role::plain},
           {line.text(newest), newest ? Role::plain : Role::dim},
           {line.text(highest), Role::dim},
           {render::sparkline(values, width, line.full, scene.charset), Role::good}}};
}

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

std::string device_series(int index) {
  return "nd" + std::to_string(index);
}

std::string efa_series(const std::string& name) {
  return "efa/" + name;
}

History::Values History::values_of(const ViewModel& model) {
  Values values;
  values[kUtilizationSeries] = model.mean_percent;
  if (model.cpu) values[kCpuSeries] = model.cpu->user_percent + model.cpu->system_percent;
  std::optional<double> memory = model.devices.empty() ? std::nullopt : std::optional<double>(0);
  for (const DeviceView& device : model.devices) {
    values[device_series(device.index)] = device.percent;
    if (device.device_bytes)
      memory = sum(memory, static_cast<double>(*device.device_bytes));
    else
      memory.reset();
  }
  values[kDeviceMemorySeries] = memory;
  std::optional<double> rx;
  std::optional<double> tx;
  for (const EfaView& efa : model.efas) {
    if (efa.rx) rx = rx.value_or(0) + *efa.rx;
    if (efa.tx) tx = tx.value_or(0) + *efa.tx;
    values[efa_series(efa.name)] = sum(efa.rx, efa.tx);
  }
  values[kEfaRxSeries] = rx;
  values[kEfaTxSeries] = tx;
  return values;
}

void History::add(const ViewModel& model) {
  const Values values = values_of(model);
  for (const auto& [name, value] : values) {
    if (series_.size() < kSeries) series_.try_emplace(name);
  }
  for (auto& [name, series] : series_) {
    const auto found = values.find(name);
    if (series.size() == kLength) series.erase(series.begin());
    series.push_back(found == values.end() ? std::nullopt : found->second);
  }
}

std::span<const std::optional<double>> History::of(const std::string& series) const {
  const auto found = series_.find(series);
  if (found == series_.end()) return {};
  return found->second;
}

Table history_table(const Scene& scene, int columns) {
  const int width = std::max(columns - kOtherColumns, 10);
  Table table;
  table.columns = {
      {""}, {"now", Align::right}, {"highest", Align::right, 1}, {"oldest to newest", Align::left, 0, true}};
  std::vector<Line> lines = {{"NeuronCores", kUtilizationSeries, kWholePercent, percent},
                             {"vCPU", kCpuSeries, kWholePercent, percent},
                             {"Device memory", kDeviceMemorySeries, 0, memory}};
  if (!scene.model.efas.empty()) {
    lines.push_back({"EFA receive", kEfaRxSeries, 0, rate_text});
    lines.push_back({"EFA send", kEfaTxSeries, 0, rate_text});
  }
  for (const DeviceView* device : shown_devices(scene.model, scene.state)) {
    lines.push_back({fmt::format("ND{}", device->index), device_series(device->index), kWholePercent, percent});
  }
  for (const Line& line : lines) table.rows.push_back(row_of(scene, line, width));
  return table;
}

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
