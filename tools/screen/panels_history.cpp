#include "tools/screen/panels.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace neuron::screen
