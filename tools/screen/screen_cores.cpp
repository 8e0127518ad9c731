#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/screen/screen.h"

namespace neuron::screen {
namespace {

constexpr int kLabelWidth = 6;   // "ND15! "
constexpr int kValueWidth = 9;   // "[100.00%]"
constexpr int kSmallestBar = 5;  // cells; narrower bars show too little
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

// Mean over the cores of these devices; nullopt when none is known.
std::optional<double> mean_percent(const std::vector<const DeviceView*>& devices) {
  double sum = 0;
  int known = 0;
  for (const DeviceView* device : devices) {
    for (const CoreView& core : device->cores) {
      if (!core.percent) continue;
      sum += *core.percent;
      ++known;
    }
  }
  return known > 0 ? std::optional(sum / known) : std::nullopt;
}

// Why the utilization of the shown cores is unknown.
std::string why_no_mean(const Scene& scene, std::size_t shown) {
  const ViewModel& model = scene.model;
  if (!model.no_devices.empty()) return model.no_devices;
  if (!model.no_utilization.empty()) return "n/a: " + model.no_utilization;
  if (shown == 0) return "n/a: no device passes the filter";
  return model.seconds > 0 ? "n/a: no core could be read" : "n/a: rates need a second sample";
}

std::string teraflops_heading(const std::vector<const DeviceView*>& devices) {
  std::optional<double> sum;
  for (const DeviceView* device : devices) {
    for (const CoreView& core : device->cores) {
      if (core.flops_per_second) sum = sum.value_or(0) + *core.flops_per_second;
    }
  }
  return std::string(" Teraflops (") + (sum ? "Sum: " : "") + teraflops_text(sum) + ')';
}

std::string heading(const Scene& scene, const std::string& reason) {
  const ViewModel& model = scene.model;
  const auto devices = shown_devices(model, scene.state);
  std::string text = "NeuronCore ";
  if (!model.core_version.empty()) text += model.core_version + ' ';
  text += "Utilization (";
  const auto mean = mean_percent(devices);
  text += mean ? "Avg: " + percent_text(mean) : reason;
  if (mean && devices.size() != model.devices.size()) {
    text += fmt::format(", {} of {} devices", devices.size(), model.devices.size());
  }
  text += ')';
  return scene.state.flops ? text + teraflops_heading(devices) : text;
}

// The label in the colour of the verdict, with a mark that needs no colour.
void draw_label(render::Canvas& canvas, int row, int column, const DeviceView& device) {
  const bool bad = device.health.state == model::HealthState::unhealthy;
  const bool doubtful = device.health.state == model::HealthState::degraded;
  const bool unknown = device.health.state == model::HealthState::unknown;
  const Role role = bad || doubtful ? role_of(device.health.state) : unknown ? Role::warning : Role::plain;
  const char* mark = bad ? "!" : doubtful ? "~" : unknown ? "?" : "";
  canvas.put(row, column, fmt::format("ND{}{}", device.index, mark), role);
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

std::string cores_heading(const Scene& scene, int columns) {
  const std::size_t shown = shown_devices(scene.model, scene.state).size();
  const std::string text = heading(scene, why_no_mean(scene, shown));
  return static_cast<int>(text.size()) <= columns ? text : heading(scene, std::string(kUnknown));
}

std::string unsaid_reason(const Scene& scene, int columns) {
  const auto devices = shown_devices(scene.model, scene.state);
  if (mean_percent(devices)) return "";
  const std::string reason = why_no_mean(scene, devices.size());
  return static_cast<int>(heading(scene, reason).size()) <= columns ? "" : "utilization " + reason;
}

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
  canvas.put(row, 0, cores_heading(scene, canvas.columns()), Role::section);
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

}  // namespace neuron::screen
