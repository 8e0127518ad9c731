#include <fmt/format.h>

#include <algorithm>

#include "tools/neuron-top/format.h"
#include "tools/neuron-top/panels.h"
#include "tools/neuron-top/selection.h"
#include "tools/render/sparkline.h"

namespace neuron::top {
namespace {

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

Table history_table(const Scene& scene, int columns) {
  const int width = std::max(columns - kOtherColumns, 10);
  Table table;
  table.columns = {{"", Align::left, 0, false},
                   {"now", Align::right, 0, false},
                   {"highest", Align::right, 1, false},
                   {"oldest to newest", Align::left, 0, true}};
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

}  // namespace neuron::top
