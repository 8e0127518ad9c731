#include <algorithm>

#include "agent/base/parse.h"
#include "tools/render/node_svg.h"
#include "tools/render/text.h"

namespace neuron::render::svg {
namespace {

constexpr int kHatchWidth = 6;  // of the band around a device with a finding
constexpr int kCoreGap = 4;
constexpr int kCoresPerRow = 4;
constexpr int kSmall = 11;  // font sizes, as in the style sheet
constexpr int kPlain = 12;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

// Rounded box with a hatched band along its edge where it is not healthy.
std::string body(const Box& box, std::string_view what, const model::Health& health, int radius) {
  const std::string_view kind = state_class(health);
  std::string classes(what);
  if (kind.empty()) return rectangle(box, radius, classes);
  const bool is_device = what == "dev";
  const int band = is_device ? kHatchWidth : kHatchWidth - 2;
  const Box inner{box.x + band, box.y + band, box.width - 2 * band, box.height - 2 * band};
  return rectangle(box, radius, "f" + std::string(kind)) + rectangle(inner, 2, is_device ? "panel" : "epanel") +
         rectangle(box, radius, classes.append(" none ").append(kind));
}

// A line under a text of `characters` in the font of fixed width, for values from the official table.
std::string assumed_line(int x, int y, std::size_t characters, Anchor anchor) {
  constexpr int kTenthsOfCharacter = 66;
  const int width = static_cast<int>(characters) * kTenthsOfCharacter / 10;
  const int left = anchor == Anchor::end ? x - width : x;
  return line({left, y + 3, left + width, y + 3, true}, "tick");
}

std::string header(const NodeReport& report, const NodeLayout& layout, const DeviceBox& at) {
  const model::NeuronDevice& device = report.host.devices[*at.position];
  const int left = at.box.x + kInset;
  const int right = at.box.right() - kInset;
  std::string out = text(left, at.box.y + 24, "n", "neuron" + std::to_string(at.index));
  if (device.memory_bytes) {
    out += text(right, at.box.y + 24, "mut s", std::to_string(*device.memory_bytes / kGiB) + " GiB", Anchor::end);
  }
  const bool shows_numa = !layout.numa_framed && device.numa_node && device.numa_node->value >= 0;
  const int numa_width = shows_numa ? 54 : 0;
  if (shows_numa) {
    const std::string numa = "NUMA " + std::to_string(device.numa_node->value);
    out += text(right, at.box.y + 41, "mut m", numa, Anchor::end);
    if (device.numa_node->origin == model::Origin::assumed) {
      out += assumed_line(right, at.box.y + 41, numa.size(), Anchor::end);
    }
  }
  std::string second = device.bdf ? model::to_string(device.bdf->value) : "";
  const bool assumed = device.bdf && device.bdf->origin == model::Origin::assumed;
  if (assumed) out += assumed_line(left, at.box.y + 41, second.size(), Anchor::start);
  if (!at.elsewhere.empty()) {
    second += (second.empty() ? "links to " : " · links to ") + format_int_list(at.elsewhere);
  }
  return out + text(left, at.box.y + 41, "mut m", fit(second, right - left - numa_width, kSmall));
}

// One logical core: its number, its holder's letter, and as many parts as it has physical cores.
std::string core(const Box& box, int id, const model::Health* health, bool assumed, int parts,
                 const PodMarks& holders) {
  const std::vector<int>& pods = holders.of_core(id);
  std::string classes = "core";
  if (!pods.empty()) classes += ' ' + PodMarks::colour(pods.front());
  const bool marked = health != nullptr && is_not_healthy(*health);
  if (marked) classes.append(" ").append(state_class(*health));
  if (assumed) classes += " dash";
  std::string out = rectangle(box, 4, classes);
  if (marked) {
    out += rectangle({box.x + 2, box.y + 2, 10, box.height - 4}, 2, "f" + std::string(state_class(*health)));
  }
  for (int part = 1; part < parts; ++part) {
    const int x = box.x + box.width * part / parts;
    out += line({x, box.bottom() - 5, x, box.bottom() - 1, false}, "tick");
  }
  std::string words = std::to_string(id);
  if (!pods.empty()) words += ' ' + PodMarks::letters(pods.front()) + (pods.size() > 1 ? "+" : "");
  return out + text(box.x + box.width / 2 + (marked ? 4 : 0), box.y + 16, "f", fit(words, box.width + 6, kPlain),
                    Anchor::middle);
}

// The worst verdict on the physical cores behind the device's logical core at `position`; nullptr where the cores or
// their verdicts are unknown.
const model::Health* core_health(const NodeReport& report, std::size_t device, std::size_t position) {
  const auto& verdicts = report.host.devices[device].core_health;
  if (device >= report.physical_cores.size() || position >= report.physical_cores[device].size()) return nullptr;
  const model::Health* worst = nullptr;
  for (const int physical : report.physical_cores[device][position]) {
    if (physical < 0 || static_cast<std::size_t>(physical) >= verdicts.size()) return nullptr;
    const model::Health& health = verdicts[static_cast<std::size_t>(physical)];
    if (worst == nullptr || model::badness(health.state) > model::badness(worst->state)) worst = &health;
  }
  return worst;
}

// False where all cores share the device's fault, which the device shows.
bool shows_cores_apart(const NodeReport& report, std::size_t position) {
  const auto& verdicts = report.host.devices[position].core_health;
  return std::ranges::any_of(verdicts, [](const model::Health& health) { return !is_not_healthy(health); });
}

std::string cores(const NodeReport& report, const DeviceBox& at, const PodMarks& holders) {
  const std::size_t position = *at.position;
  const model::NeuronDevice& device = report.host.devices[position];
  const int top = at.box.y + 50;
  if (position >= report.core_ids.size() || report.core_ids[position].empty()) {
    return text(at.box.x + kInset, top + 16, "mut", "cores unknown");
  }
  const std::vector<int>& ids = report.core_ids[position];
  const int columns = std::min(kCoresPerRow, static_cast<int>(ids.size()));
  const int width = (at.box.width - 2 * kInset - (columns - 1) * kCoreGap) / columns;
  const bool assumed = device.physical_cores && device.physical_cores->origin == model::Origin::assumed;
  const bool divided = position < report.physical_cores.size();
  const bool apart = shows_cores_apart(report, position);
  std::string out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const int column = static_cast<int>(i) % columns;
    const int row = static_cast<int>(i) / columns;
    const Box box{at.box.x + kInset + column * (width + kCoreGap), top + row * (kCoreHeight + kCoreGap), width,
                  kCoreHeight};
    const auto parts =
        divided && i < report.physical_cores[position].size() ? report.physical_cores[position][i].size() : 1;
    out += core(box, ids[i], apart ? core_health(report, position, i) : nullptr, assumed, static_cast<int>(parts),
                holders);
  }
  return out;
}

// Pods, else processes; "free" only where the kubelet answered.
std::string holder(const NodeReport& report, const DeviceBox& at, const PodMarks& holders, int y) {
  const model::NeuronDevice& device = report.host.devices[*at.position];
  const int left = at.box.x + kInset;
  const int width = at.box.width - 2 * kInset;
  const std::vector<int>& pods = holders.of_device(at.index);
  if (!pods.empty()) {
    const int pod = pods.front();
    std::string name = holders.name(pod);
    if (const auto slash = name.find('/'); slash != std::string::npos) name.erase(0, slash + 1);
    const std::string more = pods.size() > 1 ? " +" + std::to_string(pods.size() - 1) : "";
    const int room = width - 26 - static_cast<int>(more.size()) * 8;
    return rectangle({left, y - 12, 20, 16}, 4, "core " + PodMarks::colour(pod)) +
           text(left + 10, y, "b s", PodMarks::letters(pod), Anchor::middle) +
           text(left + 26, y, "f", fit(name, room, kPlain) + more);
  }
  if (device.processes && !device.processes->empty()) {
    const model::Process& process = device.processes->front();
    const auto command = report.commands.find(process.pid);
    std::string words = "pid " + std::to_string(process.pid);
    if (command != report.commands.end()) words += ' ' + command->second;
    return text(left, y, "f", fit(words, width, kPlain));
  }
  return holders.known() ? text(left, y, "mut f", "free") : "";
}

std::string finding(const DeviceBox& at, const model::Health& health, int y) {
  if (!is_not_healthy(health)) return "";
  const std::string colour = state_class(health) == "bad" ? "tb" : state_class(health) == "warn" ? "tw" : "to";
  const int left = at.box.x + kInset;
  std::string out = mark(health, left + 8, y - 4) + text(left + 22, y, "b " + colour, model::to_string(health.state));
  for (const std::string& words : reason_words(health, at.box.width)) {
    out += text(left, y += kReasonHeight, "m " + colour, words);
  }
  return out;
}

std::string missing(const DeviceBox& at) {
  const model::Health gone{model::HealthState::unhealthy, "", "", ""};
  return "<g><title>neuron" + std::to_string(at.index) + " is missing</title>\n" +
         rectangle(at.box, 8, "dev none dash bad") +
         text(at.box.x + kInset, at.box.y + 24, "n mut", "neuron" + std::to_string(at.index)) +
         mark(gone, at.box.x + kInset + 8, at.box.y + 46) +
         text(at.box.x + kInset + 22, at.box.y + 50, "b tb", "missing") + "</g>\n";
}

std::string tooltip(const std::string& name, const model::Health& health) {
  std::string words = name;
  if (model::is_assessed(health)) words += ": " + std::string(model::to_string(health.state));
  if (!health.sentence.empty()) words += ", " + health.sentence;
  return "<title>" + xml_text(words) + "</title>\n";
}

std::string frame(const Frame& at) {
  constexpr int kTitleSize = 12;
  const bool numa = at.level == CellFrame::Level::numa_node;
  std::string classes = numa ? "numa" : "pci";
  if (at.assumed) classes += " dash";
  const std::string words = fit(at.title, at.box.right() - at.title_x - 8, kTitleSize);
  return rectangle(at.box, numa ? 14 : 10, classes) +
         text(at.title_x, at.box.y + 18, numa ? "b f mut" : "f mut", words);
}

std::string wrap_end(const WrapEnd& end) {
  return "<circle class=\"ghost\" cx=\"" + std::to_string(end.x) + "\" cy=\"" + std::to_string(end.y) +
         "\" r=\"12\"/>\n" + text(end.x, end.y + 4, "s", std::to_string(end.target), Anchor::middle);
}

std::string device(const NodeReport& report, const NodeLayout& layout, const DeviceBox& at, const PodMarks& holders) {
  if (!at.position) return missing(at);
  const model::NeuronDevice& device = report.host.devices[*at.position];
  const bool away = report.own_dev && !device.node_present;
  const int holder_y = at.box.y + 50 + layout.core_rows * (kCoreHeight + kCoreGap) + 14;
  return (away ? "<g class=\"away\">" : "<g>") + tooltip("neuron" + std::to_string(at.index), device.health) +
         body(at.box, "dev", device.health, 8) + header(report, layout, at) + cores(report, at, holders) +
         holder(report, at, holders, holder_y) + finding(at, device.health, holder_y + (layout.holder_line ? 18 : 0)) +
         "</g>\n";
}

std::string efa(const NodeReport& report, const EfaBox& at, const PodMarks& holders) {
  const model::EfaInterface& efa = report.host.efas[at.position];
  const std::vector<int>& pods = holders.of_efa(efa.name);
  const std::string bdf = model::to_string(efa.bdf);
  const std::string name = efa.name.empty() ? "EFA" : efa.name;
  const bool marked = is_not_healthy(efa.health);
  const int left = at.box.x + 10;
  int room = at.box.width - 20;
  std::string out = "<g>" + tooltip("EFA interface " + name, efa.health) + body(at.box, "efa", efa.health, 4);
  if (!pods.empty()) {
    const Box swatch{at.box.right() - 28, at.box.y + 9, 20, 16};
    out += rectangle(swatch, 4, "core " + PodMarks::colour(pods.front())) +
           text(swatch.x + 10, swatch.y + 12, "b s", PodMarks::letters(pods.front()), Anchor::middle);
    room -= 24;
  }
  if (marked) {
    const int x = left + room - 10;
    out += mark(efa.health, x, at.box.y + 17);
    room -= 24;
  }
  out += text(left, at.box.y + (marked ? 14 : 15), "b f", fit(name, room, kPlain));
  out += text(left, at.box.y + (marked ? 26 : 28), "m mut", fit(marked ? efa.health.reason : bdf, room, kSmall));
  return out + "</g>\n";
}

}  // namespace

std::string machine(const NodeReport& report, const NodeLayout& layout, const PodMarks& holders) {
  std::string out;
  for (const Frame& at : layout.frames) out += frame(at);
  for (const Line& link : layout.links) out += line(link, "link");
  for (const WrapEnd& end : layout.wraps) out += wrap_end(end);
  if (const auto& box = layout.fabric_switch) {
    out += rectangle(*box, 8, "sw") +
           text(box->x + box->width / 2, box->y + 17, "b f", "switch: all devices are equally near", Anchor::middle);
  }
  for (const DeviceBox& at : layout.devices) out += device(report, layout, at, holders);
  for (const EfaGroup& group : layout.efa_groups) {
    out += text(group.title.x, group.title.y + 15, "f mut", fit(group.text, group.title.width, 12));
  }
  for (const EfaBox& at : layout.efas) out += efa(report, at, holders);
  return out;
}

}  // namespace neuron::render::svg
