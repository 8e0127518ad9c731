#include <fmt/format.h>

#include <algorithm>

#include "tools/screen/screen.h"

namespace neuron::screen {
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

// The form of a line of kinds; the first that fits is taken.
struct KindsForm {
  bool wide = false;  // the label in full, and the items below one another
  int shortness = 0;
  int gap = 2;
};
constexpr int kWideLabel = 22;
constexpr int kWideItem = 21;

int width_of(const std::vector<Labelled>& line, const KindsForm& form, int begin) {
  int column = begin;
  int end = begin;
  for (const Labelled& one : line) {
    const int start = column;
    end = column + static_cast<int>(one.label.size() + one.value.size()) + 2;
    column = form.wide ? std::max(end + form.gap, start + kWideItem) : end + form.gap;
  }
  return end;
}

struct KindsLabels {
  const char* wide;
  const char* narrow;
};

// "Total: 17.5GB   Tensors: 0.0B", with names as long as there is room for; items that do not fit are left out whole.
void draw_kinds(render::Canvas& canvas, int row, const KindsLabels& labels, std::optional<std::uint64_t> sum,
                const std::vector<MemoryKind>& kinds) {
  const bool may_be_wide = canvas.columns() >= kWide;
  KindsForm form;
  std::vector<Labelled> line;
  int begin = 0;
  for (const KindsForm& one : {KindsForm{true, 0, 2}, {true, 1, 2}, {false, 1, 2}, {false, 2, 2}, {false, 2, 1}}) {
    if (one.wide && !may_be_wide) continue;
    form = one;
    line = labelled(sum, kinds, form.shortness);
    begin = form.wide ? kWideLabel : static_cast<int>(std::string_view(labels.narrow).size()) + 1;
    if (width_of(line, form, begin) <= canvas.columns()) break;
  }
  while (line.size() > 1 && width_of(line, form, begin) > canvas.columns()) line.pop_back();
  canvas.put(row, 0, form.wide ? labels.wide : labels.narrow);
  int column = begin;
  for (const Labelled& one : line) {
    const int start = column;
    column = canvas.put(row, column, one.label + ": ", Role::label);
    column = canvas.put(row, column, one.value, one.known ? Role::good : Role::dim) + form.gap;
    if (form.wide) column = std::max(column, start + kWideItem);
  }
}

// Of those that are known; nullopt when none is.
std::optional<std::uint64_t> total_of(const std::vector<const DeviceView*>& devices,
                                      std::optional<std::uint64_t> DeviceView::*member) {
  std::optional<std::uint64_t> sum;
  for (const DeviceView* device : devices) {
    if (device->*member) sum = sum.value_or(0) + *(device->*member);
  }
  return sum;
}

// The heading, with the number of devices in the sums below where it is not all.
std::string memory_heading(const ViewModel& model, const std::vector<const DeviceView*>& devices) {
  std::string text = "Memory Usage Summary";
  if (devices.size() != model.devices.size()) {
    text += fmt::format(" ({} of {} devices)", devices.size(), model.devices.size());
  }
  std::size_t least = devices.size();
  for (const auto member : {&DeviceView::device_bytes, &DeviceView::host_bytes}) {
    const auto known = static_cast<std::size_t>(
        std::ranges::count_if(devices, [&](const auto* device) { return (device->*member).has_value(); }));
    if (known > 0) least = std::min(least, known);
  }
  if (least < devices.size()) text += fmt::format(" ({} of {} devices known)", least, devices.size());
  return text;
}

}  // namespace

void draw_heading(render::Canvas& canvas, int row, std::string_view text) {
  canvas.put(row, 0, text, Role::section);
  canvas.paint(row, 0, canvas.columns(), Role::section);
}

int draw_host(render::Canvas& canvas, int row, const Scene& scene) {
  const ViewModel& model = scene.model;
  std::string heading = "vCPU Utilization";
  if (model.cpu_count > 0) heading += fmt::format(" ({} vCPUs)", model.cpu_count);
  if (!model.cpu && !model.no_rates.empty()) heading += " (n/a: " + model.no_rates + ')';
  draw_heading(canvas, row, heading);
  draw_usage(canvas, row + 1, system_usage(scene.model));
  draw_usage(canvas, row + 2, runtime_usage(scene));
  draw_usage(canvas, row + 3, memory_usage(scene.model));
  return kHostLines;
}

int draw_memory(render::Canvas& canvas, int row, const Scene& scene) {
  const auto devices = shown_devices(scene.model, scene.state);
  std::vector<model::HostMemory> host;
  std::vector<model::DeviceMemory> device;
  for (const DeviceView* view : devices) {  // a device without known values makes no kind unknown
    if (view->host_bytes) host.push_back(view->host_kinds);
    if (!view->device_bytes) continue;
    for (const CoreView& core : view->cores) device.push_back(core.kinds);
  }
  draw_heading(canvas, row, memory_heading(scene.model, devices));
  draw_kinds(canvas, row + 1, {"Host Used Memory", "Host  "}, total_of(devices, &DeviceView::host_bytes),
             host_kinds(host));
  draw_kinds(canvas, row + 2, {"Device Used Memory", "Device"}, total_of(devices, &DeviceView::device_bytes),
             device_kinds(device));
  return kMemoryLines;
}

}  // namespace neuron::screen
