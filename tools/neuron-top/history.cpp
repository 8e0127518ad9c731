#include "tools/neuron-top/history.h"

namespace neuron::top {
namespace {

std::optional<double> sum(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
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

}  // namespace neuron::top
