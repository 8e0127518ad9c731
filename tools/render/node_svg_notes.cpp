#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "tools/render/node_svg.h"
#include "tools/render/text.h"

namespace neuron::render::svg {
namespace {

constexpr int kLeft = kMargin;
constexpr int kWidth = kPictureWidth - 2 * kMargin;
constexpr int kLineHeight = 18;
constexpr int kHeadRoom = 34;
constexpr int kSize = 12;
constexpr std::size_t kMostFindings = 16;
constexpr std::size_t kMostHoldings = 32;
constexpr std::size_t kMostLines = 3;  // of one sentence

std::string head(const std::string& words, int& y) {
  y += kHeadRoom;
  return text(kLeft, y, "hd", words);
}

// At most kMostLines lines that fit, broken at blanks; the last is cut where more follows.
std::vector<std::string> wrapped(std::string_view words, int width) {
  const std::size_t most = characters_in(width, kSize);
  std::vector<std::string> lines;
  while (!words.empty() && lines.size() + 1 < kMostLines && words.size() > most) {
    std::size_t cut = words.rfind(' ', most);
    if (cut == std::string_view::npos || cut == 0) break;
    lines.emplace_back(words.substr(0, cut));
    words.remove_prefix(cut + 1);
  }
  if (!words.empty()) lines.push_back(fit(words, width, kSize));
  return lines;
}

struct Finding {
  std::string what;
  model::Health health;
};

std::vector<Finding> findings_of(const NodeReport& report) {
  std::vector<Finding> all;
  const model::Health& node = report.host.kernel_log.node_health;  // by lines that name no device
  if (is_not_healthy(node)) all.push_back({"this node", node});
  for (const int index : report.missing_devices) {
    all.push_back({"neuron" + std::to_string(index), report.missing_health});
  }
  for (const model::NeuronDevice& device : report.host.devices) {
    if (is_not_healthy(device.health)) all.push_back({"neuron" + std::to_string(device.index), device.health});
  }
  for (const model::EfaInterface& efa : report.host.efas) {
    if (is_not_healthy(efa.health))
      all.push_back({efa.name.empty() ? model::to_string(efa.bdf) : efa.name, efa.health});
  }
  std::ranges::stable_sort(all, [](const Finding& a, const Finding& b) {
    return model::badness(a.health.state) > model::badness(b.health.state);
  });
  return all;
}

std::string finding_lines(const Finding& one, int& y) {
  y += kLineHeight + 4;
  std::string title = one.what + " is " + std::string(model::to_string(one.health.state));
  if (!one.health.reason.empty()) title += ": " + one.health.reason;
  std::string out = mark(one.health, kLeft + 9, y - 4) + text(kLeft + 26, y, "b f", fit(title, kWidth - 26, kSize));
  for (const std::string& words : wrapped(one.health.sentence, kWidth - 26)) {
    out += text(kLeft + 26, y += kLineHeight - 2, "f", words);
  }
  if (one.health.action.empty()) return out;
  for (const std::string& words : wrapped("→ " + one.health.action, kWidth - 26)) {
    out += text(kLeft + 26, y += kLineHeight - 2, "mut f", words);
  }
  return out;
}

std::string sentence_of(const std::set<int>& devices) {
  return "neuron" + format_int_list({devices.begin(), devices.end()});
}

std::string units_of(const PodUse& use) {
  const auto list = [](const std::set<int>& ids) { return format_int_list({ids.begin(), ids.end()}); };
  std::vector<std::string> parts;
  if (!use.devices.empty()) parts.push_back((use.devices.size() == 1 ? "device " : "devices ") + list(use.devices));
  if (!use.cores.empty()) parts.push_back((use.cores.size() == 1 ? "core " : "cores ") + list(use.cores));
  if (!use.efas.empty()) parts.push_back("EFA " + joined(use.efas, " "));
  if (!use.claim.empty()) parts.push_back("claim " + use.claim);
  return joined(parts, " · ");
}

// Items side by side, each an icon of 34 pixels and words.
class Legend {
 public:
  explicit Legend(int y) : y_(y + kLineHeight + 8) {}

  void add(const std::string& words, const std::function<std::string(int, int)>& icon) {
    constexpr int kIcon = 42;
    const int width = kIcon + static_cast<int>(display_width(words)) * 59 * kSize / 100 + 22;
    if (x_ > kLeft && x_ + width > kLeft + kWidth) {
      x_ = kLeft;
      y_ += kLineHeight + 8;
    }
    out_ += icon(x_, y_) + text(x_ + kIcon, y_, "f", words);
    x_ += width;
  }

  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] int y() const { return y_; }

 private:
  std::string out_;
  int x_ = kLeft;
  int y_;
};

bool has_assumed(const NodeReport& report, const NodeLayout& layout) {
  const auto assumed = [](const auto& thing) { return thing.assumed; };
  return std::ranges::any_of(layout.frames, assumed) || std::ranges::any_of(layout.links, assumed) ||
         std::ranges::any_of(report.host.devices, [](const model::NeuronDevice& device) {
           const auto is = [](const auto& maybe) { return maybe && maybe->origin == model::Origin::assumed; };
           return is(device.physical_cores) || is(device.bdf) || is(device.numa_node);
         });
}

void add_states(const std::vector<Finding>& findings, Legend& legend) {
  for (const auto state : {model::HealthState::unhealthy, model::HealthState::degraded, model::HealthState::unknown}) {
    const auto found = std::ranges::find_if(findings, [&](const Finding& one) { return one.health.state == state; });
    if (found == findings.end()) continue;
    const std::string words = state == model::HealthState::unhealthy  ? "unhealthy: not offered"
                              : state == model::HealthState::degraded ? "degraded: offered"
                                                                      : "health unknown: offered";
    legend.add(words, [&](int x, int y) {
      const std::string kind(state_class(found->health));
      return rectangle({x, y - 12, 14, 16}, 2, "f" + kind) + mark(found->health, x + 25, y - 4);
    });
  }
}

void add_devices(const NodeReport& report, const NodeLayout& layout, const PodMarks& holders, Legend& legend) {
  const bool divided = report.host.lnc && report.host.lnc->value > 1;
  legend.add(divided ? "logical core of " + std::to_string(report.host.lnc->value) + " physical ones" : "core",
             [&](int x, int y) {
               const std::string tick = divided ? line({x + 17, y - 1, x + 17, y + 3, false}, "tick") : "";
               return rectangle({x, y - 12, 34, 16}, 4, "core") + tick;
             });
  const bool solid = std::ranges::any_of(layout.links, [](const Line& link) { return !link.assumed; });
  if (solid && !layout.fabric_switch) {
    legend.add("link", [](int x, int y) { return line({x, y - 4, x + 34, y - 4, false}, "link"); });
  }
  if (!layout.wraps.empty()) {
    legend.add("wrap-around link to that device", [](int x, int y) {
      return line({x + 16, y - 4, x + 36, y - 4, false}, "link") + "<circle class=\"ghost\" cx=\"" +
             std::to_string(x + 10) + "\" cy=\"" + std::to_string(y - 4) + "\" r=\"9\"/>\n" +
             text(x + 10, y, "s", "n", Anchor::middle);
    });
  }
  const auto is_away = [](const model::NeuronDevice& device) { return !device.node_present; };
  if (report.own_dev && std::ranges::any_of(report.host.devices, is_away)) {
    legend.add("pale: not in this container", [](int x, int y) {
      return rectangle({x, y - 12, 34, 16}, 4, "dev away");
    });
  }
  if (holders.known() && !holders.empty()) {
    legend.add("held by the pod of that letter", [](int x, int y) {
      return rectangle({x, y - 12, 34, 16}, 4, "core p0") + text(x + 17, y, "b s", "A", Anchor::middle);
    });
  }
}

}  // namespace

std::string numa_nodes(const NodeReport& report, const NodeLayout& layout, int& y) {
  std::map<int, std::pair<std::string, std::set<int>>> nodes;
  for (const model::NeuronDevice& device : report.host.devices) {
    if (layout.numa_framed || !device.numa_node || device.numa_node->value < 0) continue;
    auto& [cpus, devices] = nodes[device.numa_node->value];
    if (device.cpus) cpus = format_int_list(device.cpus->value);
    devices.insert(device.index);
  }
  if (nodes.empty()) return "";
  std::string out = head("NUMA nodes", y);
  for (const auto& [node, facts] : nodes) {
    y += kLineHeight;
    out += text(kLeft, y, "b f", "NUMA " + std::to_string(node)) +
           text(kLeft + 70, y, "f", fit(sentence_of(facts.second), 300, kSize)) +
           text(kLeft + 380, y, "mut f", facts.first.empty() ? "" : fit("CPUs " + facts.first, kWidth - 380, kSize));
  }
  return out;
}

std::string findings(const NodeReport& report, int& y) {
  const std::vector<Finding> all = findings_of(report);
  if (all.empty()) return "";
  std::string out = head("Problems", y);
  for (std::size_t i = 0; i < std::min(all.size(), kMostFindings); ++i) out += finding_lines(all[i], y);
  if (all.size() > kMostFindings) {
    out += text(kLeft + 26, y += kLineHeight, "mut f", "and " + std::to_string(all.size() - kMostFindings) + " more");
  }
  return out;
}

std::string holdings(const NodeReport& report, const PodMarks& holders, int& y) {
  if (!holders.known() || holders.empty()) return "";
  std::string out = head("Holders", y);
  const std::size_t shown = std::min(report.pods->size(), kMostHoldings);
  constexpr int kNames = 400;
  for (std::size_t i = 0; i < shown; ++i) {
    const PodUse& use = (*report.pods)[i];
    const int pod = holders.number(use);
    y += kLineHeight + 3;
    out += rectangle({kLeft, y - 12, 20, 16}, 4, "core " + PodMarks::colour(pod)) +
           text(kLeft + 10, y, "b s", PodMarks::letters(pod), Anchor::middle) +
           text(kLeft + 28, y, "f", fit(holders.name(pod) + " · " + use.container, kNames - 40, kSize)) +
           text(kLeft + kNames, y, "mut f", fit(units_of(use), kWidth - kNames, kSize));
  }
  if (shown < report.pods->size()) {
    out += text(kLeft + 28, y += kLineHeight, "mut f", "and " + std::to_string(report.pods->size() - shown) + " more");
  }
  return out;
}

std::string legend(const NodeReport& report, const NodeLayout& layout, const PodMarks& holders, int& y) {
  y += kHeadRoom - 16;
  std::string out = line({kLeft, y, kLeft + kWidth, y, false}, "rule");
  Legend items(y);
  if (!layout.devices.empty()) add_devices(report, layout, holders, items);
  if (!layout.efas.empty()) {
    const bool docked = layout.efa_groups.empty();
    items.add(docked ? "EFA interface, below its nearest devices" : "EFA interface", [](int x, int y_of) {
      return rectangle({x, y_of - 12, 34, 16}, 3, "efa");
    });
  }
  if (has_assumed(report, layout)) {
    items.add("dashed: from the official table, not from the machine", [](int x, int y_of) {
      return line({x, y_of - 4, x + 34, y_of - 4, true}, "link");
    });
  }
  add_states(findings_of(report), items);
  y = items.y();
  return out + items.out();
}

}  // namespace neuron::render::svg
