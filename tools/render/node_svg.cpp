#include "tools/render/node_svg.h"

#include <algorithm>
#include <array>
#include <set>

#include "agent/base/parse.h"
#include "tools/render/node_view.h"
#include "tools/render/text.h"

namespace neuron::render::svg {
namespace {

// Colours of Okabe and Ito's palette, distinct for people with any colour vision, and tints of it for holders. Each
// colour also has a shape, hatch or letter.
constexpr std::string_view kShapes = R"svg(
text{font-family:ui-sans-serif,system-ui,"Segoe UI","DejaVu Sans",Helvetica,Arial,sans-serif;font-size:12px}
.t1{font-size:26px;font-weight:700}.t2{font-size:14px}.hd{font-size:15px;font-weight:700}
.n{font-size:15px;font-weight:700}.b{font-weight:700}.s{font-size:11px}.f{font-size:12px}
.m{font-family:ui-monospace,"SFMono-Regular","DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:11px}
.numa,.pci,.dev,.core,.efa,.ghost,.sw{stroke-width:1.2}.dev{stroke-width:1.6}.link{stroke-width:3;stroke-linecap:round}
.tick{stroke-width:1}.dash{stroke-dasharray:5 3}.fbad{fill:url(#nls-bad)}.fwarn{fill:url(#nls-warn)}.fodd{fill:url(#nls-odd)}.link.dash{stroke-dasharray:6 6;stroke-width:2.5}rect.none{fill:none}
.bad{stroke-width:3}.warn{stroke-width:2.4}.odd{stroke-width:2.4}.away{opacity:.45})svg";

constexpr std::string_view kLight = R"svg(
.bg{fill:#fff}text{fill:#1b2229}.mut{fill:#56616c}.numa{fill:#f3f5f8;stroke:#bcc5cf}.pci{fill:#e6eaf0;stroke:#a3aebb}
.dev{fill:#fff;stroke:#47525e}.core{fill:#eef1f4;stroke:#87939f}.tick{stroke:#87939f}.efa{fill:#e3f4ee;stroke:#00795a}
.link{stroke:#0072b2}.ghost{fill:#fff;stroke:#0072b2}.sw{fill:#d9ebf7;stroke:#0072b2}.rule{stroke:#d5dbe1}
.p0{fill:#a9d7f3}.p1{fill:#f5cd85}.p2{fill:#98dcc3}.p3{fill:#ecc2d8}.p4{fill:#f3ea8f}.p5{fill:#a9bdf0}.p6{fill:#d3d3d3}.p7{fill:#dcc6a4}
.dev.bad,.efa.bad,.core.bad,.k.bad{stroke:#c44601}.dev.warn,.efa.warn,.core.warn,.k.warn{stroke:#a06c00}
.dev.odd,.efa.odd,.core.odd,.k.odd{stroke:#5b6670}.hb{fill:#fbe3d6;stroke:#c44601}.hw{fill:#fdf0d2;fill-opacity:1}.hwd{fill:#a06c00}
.ho{fill:#eceff1;stroke:#8a949d}.k{fill:#fff}.tb{fill:#a83b00}.tw{fill:#7f5600}.to{fill:#4d5760}.panel{fill:#fff}.epanel{fill:#e3f4ee})svg";

constexpr std::string_view kDark = R"svg(
.bg{fill:#0d1117}text{fill:#e8edf2}.mut{fill:#a3afbb}.numa{fill:#151b23;stroke:#3b4652}.pci{fill:#1e2630;stroke:#4d5a68}
.dev{fill:#0f151c;stroke:#98a5b3}.core{fill:#253039;stroke:#65727f}.tick{stroke:#65727f}.efa{fill:#0d2c24;stroke:#2fb893}
.link{stroke:#56b4e9}.ghost{fill:#0d1117;stroke:#56b4e9}.sw{fill:#12324a;stroke:#56b4e9}.rule{stroke:#2b343e}
.p0{fill:#1d5f86}.p1{fill:#80540c}.p2{fill:#0b6a50}.p3{fill:#7d3f64}.p4{fill:#665f14}.p5{fill:#324a9c}.p6{fill:#565c63}.p7{fill:#665231}
.dev.bad,.efa.bad,.core.bad,.k.bad{stroke:#ff7a33}.dev.warn,.efa.warn,.core.warn,.k.warn{stroke:#e8ab2e}
.dev.odd,.efa.odd,.core.odd,.k.odd{stroke:#aab4be}.hb{fill:#3d1a0a;stroke:#ff7a33}.hw{fill:#33270b;fill-opacity:1}.hwd{fill:#e8ab2e}
.ho{fill:#232a31;stroke:#808b96}.k{fill:#0d1117}.tb{fill:#ff9b66}.tw{fill:#f0c05a}.to{fill:#bac4cd}.panel{fill:#0f151c}.epanel{fill:#0d2c24})svg";

constexpr std::string_view kHatches = R"svg(<defs>
<pattern id="nls-bad" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hb" width="9" height="9" style="stroke:none"/><path class="hb" d="M2 0V9" stroke-width="3.4"/></pattern>
<pattern id="nls-warn" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="hw" width="8" height="8"/><circle class="hwd" cx="4" cy="4" r="1.8"/></pattern>
<pattern id="nls-odd" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="ho" width="8" height="8" style="stroke:none"/><path class="ho" d="M0 4H8" stroke-width="1.4"/></pattern>
</defs>
)svg";

std::string place(int x, int y) {
  return " x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + '"';
}

constexpr int kColours = 8;

std::string name_of(const PodUse& use) {
  return use.pod_namespace + '/' + use.pod;
}

void add(std::vector<int>& pods, int pod) {
  if (std::ranges::find(pods, pod) == pods.end()) pods.push_back(pod);
}

}  // namespace

std::string rectangle(const Box& box, int radius, std::string_view classes) {
  std::string element = "<rect" + place(box.x, box.y);
  element += " width=\"" + std::to_string(box.width) + "\" height=\"" + std::to_string(box.height) + '"';
  if (radius > 0) element += " rx=\"" + std::to_string(radius) + '"';
  return element.append(" class=\"").append(classes).append("\"/>\n");
}

std::string line(const Line& line, std::string_view classes) {
  std::string element = "<line x1=\"" + std::to_string(line.x1) + "\" y1=\"" + std::to_string(line.y1) + "\" x2=\"" +
                        std::to_string(line.x2) + "\" y2=\"" + std::to_string(line.y2) + "\" class=\"";
  return element.append(classes).append(line.assumed ? " dash\"/>\n" : "\"/>\n");
}

std::string text(int x, int y, std::string_view classes, std::string_view words, Anchor anchor) {
  std::string element = "<text" + place(x, y);
  if (anchor != Anchor::start) element += anchor == Anchor::middle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
  if (!classes.empty()) element.append(" class=\"").append(classes).append("\"");
  return element.append(">").append(xml_text(words)).append("</text>\n");
}

std::string style() {
  std::string sheet = "<style>";
  sheet.append(kShapes).append(kLight);
  sheet.append("\n@media (prefers-color-scheme:dark){").append(kDark).append("\n}\n</style>\n");
  return sheet.append(kHatches);
}

std::string_view state_class(const model::Health& health) {
  if (!is_not_healthy(health)) return "";
  if (health.state == model::HealthState::unhealthy) return "bad";
  return health.state == model::HealthState::degraded ? "warn" : "odd";
}

std::string mark(const model::Health& health, int x, int y) {
  const std::string_view kind = state_class(health);
  if (kind.empty()) return "";
  std::string element =
      "<g transform=\"translate(" + std::to_string(x) + ' ' + std::to_string(y) + ")\"><path class=\"k ";
  element.append(kind).append("\" d=\"");
  if (kind == "bad")
    return element + "M-3-7H3L7-3V3L3 7H-3L-7 3V-3ZM-3-3L3 3M3-3L-3 3\" style=\"stroke-width:2\"/></g>\n";
  if (kind == "warn") return element + "M0-7L8 7H-8ZM0-2V2M0 4V5\" style=\"stroke-width:2\"/></g>\n";
  return element + "M7 0A7 7 0 1 1-7 0A7 7 0 1 1 7 0ZM-2-2A2 2 0 1 1 0 0V1M0 3V4\" style=\"stroke-width:1.7\"/></g>\n";
}

PodMarks::PodMarks(const NodeReport& report) {
  if (!report.pods) return;
  known_ = true;
  std::set<std::string> names;
  for (const PodUse& use : *report.pods) names.insert(name_of(use));
  names_.assign(names.begin(), names.end());
  for (const PodUse& use : *report.pods) {
    const int pod = number(use);
    for (const int device : use.devices) add(devices_[device], pod);
    for (const int core : use.cores) add(cores_[core], pod);
    for (const std::string& efa : use.efas) add(efas_[efa], pod);
  }
}

int PodMarks::number(const PodUse& use) const {
  return static_cast<int>(std::ranges::lower_bound(names_, name_of(use)) - names_.begin());
}

std::string PodMarks::letters(int pod) {
  constexpr int kLetters = 26;
  std::string text(1, static_cast<char>('A' + pod % kLetters));
  return pod < kLetters ? text : letters(pod / kLetters - 1) + text;
}

std::string PodMarks::colour(int pod) {
  return "p" + std::to_string(pod % kColours);
}

}  // namespace neuron::render::svg

namespace neuron::render {
namespace {

using svg::Anchor;

constexpr int kTop = 112;  // of the machine, below title and facts

std::string driver_words(const NodeReport& report) {
  std::string words = report.host.driver_version.empty() ? "driver unknown" : "driver " + report.host.driver_version;
  const std::string& efa = report.host.efa_driver_version;
  if (report.host.devices.empty() && report.host.driver_version.empty() && !efa.empty()) return "EFA driver " + efa;
  if (!efa.empty()) words += " · EFA driver " + efa;
  const auto& devices = report.host.devices;
  if (std::ranges::any_of(devices, has_logical_core_choice) && report.host.lnc) {
    words += " · LNC " + std::to_string(report.host.lnc->value);
    if (report.host.lnc->origin == model::Origin::assumed) words += " (assumed)";
  }
  const auto& server = report.host.ultraserver;
  if (server && !server->memberships.empty()) {
    const auto& largest = server->memberships.back();
    words += " · UltraServer " + largest.server_id + ", node " + std::to_string(largest.node_id);
    if (largest.nodes > 0) words += " of " + std::to_string(largest.nodes);
  }
  return words;
}

std::string_view links_words(const NodeShape& shape) {
  constexpr std::array<std::string_view, 7> kWords = {
      "", "", " in a 4x4 torus", " in a ring", " in a line", " behind a switch", ", linked irregularly"};  // by Kind
  if (shape.kind == NodeShape::Kind::loose && shape.links.empty()) return ", links unknown";
  return kWords[static_cast<std::size_t>(shape.kind)];
}

std::string hardware_words(const NodeReport& report, const NodeLayout& layout) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
  std::size_t cores = 0;
  std::uint64_t memory = 0;
  for (const auto& ids : report.core_ids) cores += ids.size();
  for (const model::NeuronDevice& device : report.host.devices) memory += device.memory_bytes.value_or(0);
  std::string words;
  if (!report.host.devices.empty()) {
    words = counted(report.host.devices.size(), "device") + std::string(links_words(layout.shape));
    if (!report.missing_devices.empty()) words += " (" + std::to_string(report.missing_devices.size()) + " missing)";
    if (cores > 0) words += " · " + counted(cores, "logical core");
    if (memory >= kGiB) words += " · " + std::to_string(memory / kGiB) + " GiB";
  }
  if (!report.host.efas.empty() || words.empty()) {
    words += (words.empty() ? "" : " · ") + counted(report.host.efas.size(), "EFA interface");
  }
  return words;
}

std::size_t unread_count(const model::HostScan& host) {
  std::size_t count = host.problems.size();
  for (const model::NeuronDevice& device : host.devices) count += device.problems.size();
  for (const model::EfaInterface& efa : host.efas) count += efa.problems.size();
  return count;
}

std::string health_words(const NodeReport& report) {
  int unhealthy = 0;
  int other = 0;
  const auto count = [&](const model::Health& health) {
    if (!is_not_healthy(health)) return;
    ++(health.state == model::HealthState::unhealthy ? unhealthy : other);
  };
  for (const model::NeuronDevice& device : report.host.devices) count(device.health);
  for (const model::EfaInterface& efa : report.host.efas) count(efa.health);
  count(report.host.kernel_log.node_health);
  unhealthy += static_cast<int>(report.missing_devices.size());
  std::string words = unhealthy > 0 ? std::to_string(unhealthy) + " unhealthy" : "";
  if (other > 0) words += (words.empty() ? "" : ", ") + std::to_string(other) + " degraded or unknown";
  if (words.empty()) words = "no problem found";
  const std::size_t unread = unread_count(report.host);
  if (unread > 0) words += ", " + counted(unread, "value") + " unread";
  return words;
}

std::string type_of(const NodeReport& report) {
  return report.host.instance_type.empty() ? "unknown instance type" : report.host.instance_type;
}

std::string head(const NodeReport& report, const NodeLayout& layout) {
  constexpr int kRight = kPictureWidth - kMargin;
  constexpr int kPlain = 14;
  constexpr int kWide = 880;
  return svg::text(kMargin, 44, "t1", fit(type_of(report), 700, 26)) +
         svg::text(kRight, 44, "t2 mut", report.host.instance_id, Anchor::end) +
         svg::text(kMargin, 68, "t2", fit(driver_words(report), kRight - kMargin, kPlain)) +
         svg::text(kMargin, 89, "t2 mut", fit(hardware_words(report, layout), kWide, kPlain)) +
         svg::text(kRight, 89, "t2 b", health_words(report), Anchor::end);
}

// The content of the picture in words, for screen readers.
std::string description(const NodeReport& report, const NodeLayout& layout) {
  constexpr std::size_t kLongest = 4000;
  std::string words =
      driver_words(report) + ". " + hardware_words(report, layout) + ". Health: " + health_words(report);
  for (const model::NeuronDevice& device : report.host.devices) {
    if (is_not_healthy(device.health))
      words += "; neuron" + std::to_string(device.index) + " " + device.health.sentence;
  }
  words += '.';
  for (std::size_t i = 0; report.pods && i < report.pods->size() && words.size() < kLongest; ++i) {
    const PodUse& use = (*report.pods)[i];
    words += ' ' + use.pod_namespace + '/' + use.pod + " holds " + counted(use.devices.size(), "device") + " and " +
             counted(use.efas.size(), "EFA interface") + '.';
  }
  return xml_text(words, kLongest);
}

}  // namespace

std::string node_svg(const NodeReport& report) {
  const NodeLayout layout = lay_out(report, kTop);
  const svg::PodMarks holders(report);
  int y = layout.bottom;
  std::string body = svg::machine(report, layout, holders);
  body += svg::findings(report, y);
  body += svg::holdings(report, holders, y);
  body += svg::numa_nodes(report, layout, y);
  body += svg::legend(report, layout, holders, y);
  const std::string height = std::to_string(y + kMargin);
  const std::string width = std::to_string(kPictureWidth);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
                    "\" viewBox=\"0 0 " + width + ' ' + height +
                    "\" role=\"img\" aria-labelledby=\"nls-title nls-desc\">\n";
  out += "<title id=\"nls-title\">" + xml_text("neuron-ls: " + type_of(report)) + "</title>\n";
  out += "<desc id=\"nls-desc\">" + description(report, layout) + "</desc>\n" + svg::style();
  out += svg::rectangle({0, 0, kPictureWidth, y + kMargin}, 0, "bg");
  return out + head(report, layout) + body + "</svg>\n";
}

}  // namespace neuron::render
