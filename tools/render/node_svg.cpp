#include <algorithm>
#include <array>

#include "tools/render/node_svg.h"
#include "tools/render/node_view.h"
#include "tools/render/text.h"

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
  const svg::Holders holders(report);
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
