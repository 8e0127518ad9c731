#include "tools/neuron-top/cores_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/neuron-top/format.h"
#include "tools/neuron-top/selection.h"
#include "tools/render/bar.h"
#include "tools/render/sparkline.h"

namespace neuron::top {
namespace {

constexpr int kLabelWidth = 6;   // "ND15! "
constexpr int kValueWidth = 9;   // "[100.00%]"
constexpr int kSmallestBar = 5;  // cells; narrower bars tell nothing
constexpr int kLargestBar = 40;  // wider ones are hard to compare
constexpr int kCompactGap = 3;

int core_count(const Scene& scene) {
  std::size_t most = 0;
  for (const DeviceView& device : scene.model.devices) most = std::max(most, device.cores.size());
  return static_cast<int>(most);
}

int compact_value_width(const Scene& scene) {
  return scene.state.flops ? 6 : 4;
}

CoresLayout bars_layout(const Scene& scene, int columns, int devices) {
  const int cores = std::max(core_count(scene), 1);
  const int width = std::min((columns - kLabelWidth) / cores, kLargestBar + kValueWidth + 2);
  return {false, 1, width, devices == 0 ? 0 : devices + 1};
}

CoresLayout compact_layout(const Scene& scene, int columns, int devices) {
  const int width = kLabelWidth + std::max(core_count(scene), 1) + 1 + compact_value_width(scene) + kCompactGap;
  const int per_line = std::max((columns + kCompactGap) / width, 1);
  return {true, per_line, width, (devices + per_line - 1) / per_line};
}

std::string heading(const Scene& scene) {
  const ViewModel& model = scene.model;
  std::string text = "NeuronCore ";
  if (!model.core_version.empty()) text += model.core_version + ' ';
  text += "Utilization (";
  if (model.mean_percent) {
    text += "Avg: " + percent_text(model.mean_percent);
  } else if (!model.no_devices.empty()) {
    text += model.no_devices;
  } else if (!model.no_utilization.empty()) {
    text += "n/a: " + model.no_utilization;
  } else {
    text += model.seconds > 0 ? "n/a: no core could be read" : "n/a: rates need a second sample";
  }
  text += ')';
  if (!scene.state.flops) return text;
  std::optional<double> sum;
  for (const DeviceView& device : model.devices) {
    for (const CoreView& core : device.cores) {
      if (core.flops_per_second) sum = sum.value_or(0) + *core.flops_per_second;
    }
  }
  return text + " Teraflops (" + (sum ? "Sum: " : "") + teraflops_text(sum) + ')';
}

// The label in the colour of the verdict, with a mark for those who see no colour.
void draw_label(render::Canvas& canvas, int row, int column, const DeviceView& device) {
  const bool bad = device.health.state == model::HealthState::unhealthy;
  const bool doubtful = device.health.state == model::HealthState::degraded;
  const Role role = bad || doubtful ? role_of(device.health.state) : Role::plain;
  canvas.put(row, column, fmt::format("ND{}{}", device.index, bad ? "!" : doubtful ? "~" : ""), role);
}

std::string value_text(const Scene& scene, const CoreView& core) {
  if (scene.state.flops) return fmt::format("[{:>7}]", teraflops_text(core.flops_per_second));
  return fmt::format("[{:>6}]", percent_text(core.percent));
}

void draw_bars(render::Canvas& canvas, int row, const Scene& scene, const CoresLayout& layout,
               const DeviceView& device) {
  draw_label(canvas, row, 0, device);
  int column = kLabelWidth;
  for (const CoreView& core : device.cores) {
    const std::string text = value_text(scene, core);
    const int bar = layout.cell_width - static_cast<int>(text.size()) - 2;
    if (core.percent) render::draw_bar(canvas, row, column, bar, {{*core.percent / 100, Role::good}});
    canvas.put(row, column + bar + 1, text, core.percent ? Role::plain : Role::dim);
    column += layout.cell_width;
  }
}

std::string compact_value(const Scene& scene, const DeviceView& device) {
  if (!scene.state.flops) return device.percent ? fmt::format("{:>3.0f}%", *device.percent) : " n/a";
  std::optional<double> sum = device.cores.empty() ? std::nullopt : std::optional<double>(0);
  for (const CoreView& core : device.cores) {
    if (sum && core.flops_per_second)
      *sum += *core.flops_per_second;
    else
      sum.reset();
  }
  return fmt::format("{:>6}", teraflops_text(sum));
}

void draw_compact(render::Canvas& canvas, int row, int column, const Scene& scene, const DeviceView& device) {
  draw_label(canvas, row, column, device);
  column += kLabelWidth;
  for (const CoreView& core : device.cores) {
    column =
        canvas.put(row, column, render::level(core.percent, 100, scene.charset), core.percent ? Role::good : Role::dim);
  }
  canvas.put(row, column + 1, compact_value(scene, device), device.percent ? Role::plain : Role::dim);
}

void draw_core_titles(render::Canvas& canvas, int row, const Scene& scene, const CoresLayout& layout) {
  for (int core = 0; core < core_count(scene); ++core) {
    const int begin = kLabelWidth + core * layout.cell_width;
    canvas.put_centred(row, begin, begin + layout.cell_width, fmt::format("NC{}", core), Role::label);
  }
}

}  // namespace

CoresLayout lay_out_cores(const Scene& scene, int columns, int available) {
  const int devices = static_cast<int>(shown_devices(scene.model, scene.state).size());
  const CoresLayout bars = bars_layout(scene, columns, devices);
  const CoresLayout compact = compact_layout(scene, columns, devices);
  const bool bars_fit = bars.cell_width >= kValueWidth + kSmallestBar + 2 && bars.lines <= available;
  if (scene.state.cores == CoreLayout::compact) return compact;
  if (scene.state.cores == CoreLayout::bars && bars.cell_width >= kValueWidth + 2) return bars;
  return bars_fit ? bars : compact;
}

int draw_cores(render::Canvas& canvas, int row, int height, const Scene& scene, const CoresLayout& layout) {
  const auto devices = shown_devices(scene.model, scene.state);
  const int bottom = row + std::min(height, layout.lines + 1);
  canvas.put(row, 0, heading(scene), Role::section);
  canvas.paint(row, 0, canvas.columns(), Role::section);
  int line = row + 1;
  if (!layout.compact && !devices.empty() && line < bottom) draw_core_titles(canvas, line++, scene, layout);
  const auto room = static_cast<std::size_t>(std::max(bottom - line, 0) * layout.per_line);
  const bool all = devices.size() <= room;
  const std::size_t shown = all ? devices.size() : room - std::min(room, static_cast<std::size_t>(layout.per_line));
  for (std::size_t i = 0; i < shown; ++i) {
    const int position = static_cast<int>(i);
    const int at = line + position / layout.per_line;
    if (layout.compact) {
      draw_compact(canvas, at, position % layout.per_line * layout.cell_width, scene, *devices[i]);
    } else {
      draw_bars(canvas, at, scene, layout, *devices[i]);
    }
  }
  if (!all) canvas.put(bottom - 1, 0, fmt::format("and {} more devices", devices.size() - shown), Role::dim);
  return bottom - row;
}

}  // namespace neuron::top
