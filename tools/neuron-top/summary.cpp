#include "tools/neuron-top/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/neuron-top/format.h"
#include "tools/neuron-top/memory_tree.h"
#include "tools/neuron-top/selection.h"
#include "tools/render/bar.h"

namespace neuron::top {
namespace {

constexpr int kLabelWidth = 19;  // "Runtime vCPU Usage "
constexpr int kValueWidth = 21;
constexpr int kWide = 150;  // columns from which on the memory kinds have their full names

struct Usage {
  std::string label;
  std::vector<render::BarPart> parts;
  std::string text;
  bool known = false;
};

void draw_usage(render::Canvas& canvas, int row, const Usage& usage) {
  canvas.put(row, 0, usage.label);
  const int width = canvas.columns() - kLabelWidth - kValueWidth - 1;
  if (usage.known) render::draw_bar(canvas, row, kLabelWidth, width, usage.parts);
  canvas.put_right(row, canvas.columns(), usage.text, usage.known ? Role::plain : Role::dim);
}

Usage cpu_usage(std::string label, std::optional<double> user, std::optional<double> system) {
  Usage usage{std::move(label), {}, "[" + std::string(kUnknown) + "]", false};
  if (!user || !system) return usage;
  usage.known = true;
  usage.parts = {{*user / 100, Role::good}, {*system / 100, Role::system}};
  usage.text = fmt::format("[{:5.2f}%,{:5.2f}%]", *user, *system);
  return usage;
}

Usage system_usage(const ViewModel& model) {
  if (!model.cpu) return cpu_usage("System vCPU Usage", std::nullopt, std::nullopt);
  return cpu_usage("System vCPU Usage", model.cpu->user_percent, model.cpu->system_percent);
}

// Of the chosen process, else of all of them.
Usage runtime_usage(const Scene& scene) {
  constexpr const char* kLabel = "Runtime vCPU Usage";
  const ViewModel& model = scene.model;
  for (const ProcessView& process : model.processes) {
    if (scene.state.tab == process.pid) return cpu_usage(kLabel, process.user_percent, process.system_percent);
  }
  if (model.runtime_cpu) {
    return cpu_usage(kLabel, model.runtime_cpu->user_percent, model.runtime_cpu->system_percent);
  }
  Usage usage = cpu_usage(kLabel, std::nullopt, std::nullopt);
  if (model.processes.empty() && model.no_processes.empty() && !model.devices.empty()) usage.text = "[no process]";
  return usage;
}

Usage memory_usage(const ViewModel& model) {
  const auto& memory = model.memory;
  if (!memory || memory->total_bytes == 0) return {"Host Memory", {}, "[" + std::string(kUnknown) + "]", false};
  const std::uint64_t used = memory->total_bytes - std::min(memory->available_bytes, memory->total_bytes);
  const double fraction = static_cast<double>(used) / static_cast<double>(memory->total_bytes);
  return {"Host Memory",
          {{fraction, Role::good}},
          fmt::format("[{} of {}]", memory_text(used), memory_text(memory->total_bytes)),
          true};
}

// A name in full, for 80 columns, and for 80 columns full of large numbers.
std::string name_at(const std::string& name, int shortness) {
  struct Short {
    const char* name;
    const char* shorter;
    const char* shortest;
  };
  static constexpr Short kShort[] = {{"Tensors", "Tensors", "Tens"},        {"Constants", "Const", "Const"},
                                     {"DMA Buffers", "DMA", "DMA"},         {"App. Memory", "App", "App"},
                                     {"Model Code", "Code", "Code"},        {"Runtime Memory", "Runtime", "Run"},
                                     {"Model Scratchpad", "Scratch", "Scr"}};
  for (const Short& one : kShort) {
    if (name == one.name) return shortness == 0 ? name : shortness == 1 ? one.shorter : one.shortest;
  }
  return name;
}

struct Labelled {
  std::string label;
  std::string value;
  bool known = false;
};

// "Other" only when there is some.
std::vector<Labelled> labelled(std::optional<std::uint64_t> sum, const std::vector<MemoryKind>& kinds, int shortness) {
  std::vector<Labelled> line = {{"Total", memory_text(sum), sum.has_value()}};
  for (const MemoryKind& kind : kinds) {
    if (kind.name == "Other" && kind.bytes.value_or(0) == 0) continue;
    line.push_back({name_at(kind.name, shortness), memory_text(kind.bytes), kind.bytes.has_value()});
  }
  return line;
}

// "Total: 17.5GB   Tensors: 0.0B", with names as long as there is room for.
void draw_kinds(render::Canvas& canvas, int row, const char* label, std::optional<std::uint64_t> sum,
                const std::vector<MemoryKind>& kinds) {
  const bool wide = canvas.columns() >= kWide;
  const int begin = wide ? 22 : canvas.put(row, 0, label) + 1;
  canvas.put(row, 0, label);
  std::vector<Labelled> line;
  int gap = 2;
  for (int shortness = wide ? 0 : 1; shortness <= 2; ++shortness) {
    line = labelled(sum, kinds, shortness);
    int width = begin - gap;
    for (const Labelled& one : line) width += static_cast<int>(one.label.size() + one.value.size()) + 2 + gap;
    if (width <= canvas.columns()) break;
    if (shortness == 2) gap = 1;
  }
  int column = begin;
  for (const Labelled& one : line) {
    const int start = column;
    column = canvas.put(row, column, one.label + ": ", Role::label);
    column = canvas.put(row, column, one.value, one.known ? Role::good : Role::dim) + gap;
    if (wide) column = std::max(column, start + 21);
  }
}

std::optional<std::uint64_t> total_of(const std::vector<const DeviceView*>& devices,
                                      std::optional<std::uint64_t> DeviceView::*member) {
  std::optional<std::uint64_t> sum;
  for (const DeviceView* device : devices) {
    if (!(device->*member)) return std::nullopt;
    sum = sum.value_or(0) + *(device->*member);
  }
  return sum;
}

int badness(model::HealthState state) {
  if (state == model::HealthState::unhealthy) return 2;
  return state == model::HealthState::degraded ? 1 : 0;
}

}  // namespace

void draw_heading(render::Canvas& canvas, int row, std::string_view text) {
  canvas.put(row, 0, text, Role::section);
  canvas.paint(row, 0, canvas.columns(), Role::section);
}

int draw_host(render::Canvas& canvas, int row, const Scene& scene) {
  const int cpus = scene.model.cpu_count;
  draw_heading(canvas, row, cpus > 0 ? fmt::format("vCPU Utilization ({} vCPUs)", cpus) : "vCPU Utilization");
  draw_usage(canvas, row + 1, system_usage(scene.model));
  draw_usage(canvas, row + 2, runtime_usage(scene));
  draw_usage(canvas, row + 3, memory_usage(scene.model));
  return kHostLines;
}

int draw_memory(render::Canvas& canvas, int row, const Scene& scene) {
  const auto devices = shown_devices(scene.model, scene.state);
  std::vector<model::HostMemory> host;
  std::vector<model::DeviceMemory> device;
  for (const DeviceView* view : devices) {
    host.push_back(view->host_kinds);
    for (const CoreView& core : view->cores) device.push_back(core.kinds);
  }
  const bool filtered = devices.size() != scene.model.devices.size();
  draw_heading(canvas, row,
               filtered
                   ? fmt::format("Memory Usage Summary ({} of {} devices)", devices.size(), scene.model.devices.size())
                   : "Memory Usage Summary");
  const bool wide = canvas.columns() >= kWide;
  draw_kinds(canvas, row + 1, wide ? "Host Used Memory" : "Host  ", total_of(devices, &DeviceView::host_bytes),
             host_kinds(host));
  draw_kinds(canvas, row + 2, wide ? "Device Used Memory" : "Device", total_of(devices, &DeviceView::device_bytes),
             device_kinds(device));
  return kMemoryLines;
}

std::vector<std::string> worst_news(const ViewModel& model) {
  int worst = 0;
  std::vector<std::string> lines;
  int others = -1;
  const auto consider = [&](const std::string& name, const model::Health& health) {
    if (badness(health.state) == 0) return;
    ++others;
    if (badness(health.state) <= worst) return;
    worst = badness(health.state);
    lines = {fmt::format("{} is {}: {}", name, model::to_string(health.state), health.sentence)};
    if (!health.action.empty()) lines.push_back("  what to do: " + health.action);
  };
  for (const DeviceView& device : model.devices) consider(fmt::format("ND{}", device.index), device.health);
  for (const EfaView& efa : model.efas) consider(efa.name, efa.health);
  if (others > 0) lines.front() = fmt::format("{} (and {} more, see c and e)", lines.front(), others);
  const int missing = model.expected_devices - static_cast<int>(model.devices.size());
  if (lines.empty() && missing > 0 && !model.devices.empty()) {
    lines = {fmt::format("{} of the {} devices of this instance type are missing", missing, model.expected_devices),
             "  what to do: dmesg | grep -i neuron; stop and start the instance if they do not come back"};
  }
  return lines;
}

}  // namespace neuron::top
