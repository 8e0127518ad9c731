#include <algorithm>
#include <functional>
#include <map>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/map_parts.h"
#include "tools/render/text.h"

namespace neuron::fleet::map {
namespace {

namespace svg = render::svg;
using render::kMargin;

constexpr int kLine = 20;
constexpr int kHeadRoom = 30;
constexpr int kSize = 12;
constexpr std::size_t kMostWorkloads = 240;
constexpr std::size_t kMostReasons = 12;

std::string section(const std::string& words, int& y) {
  y += kHeadRoom;
  return svg::text(kMargin, y, "hd", words);
}

std::string words_of(const Workload& workload) {
  std::string words = counted(workload.pods, "pod");
  if (workload.devices > 0) words += ", " + counted(workload.devices, "device");
  if (workload.efas > 0) words += ", " + counted(workload.efas, "interface");
  return words;
}

// Entries side by side, each a sample and words.
class Legend {
 public:
  Legend(int width, int y) : width_(width), y_(y + kLine) {}

  void add(const std::string& words, const std::function<std::string(int x, int y)>& sample) {
    constexpr int kSample = 44;
    constexpr int kBetween = 26;
    constexpr int kCharacter = 7;
    const int needed = kSample + static_cast<int>(render::display_width(words)) * kCharacter + kBetween;
    if (x_ + needed > width_ - kMargin && x_ > kMargin) {
      x_ = kMargin;
      y_ += kLine + 4;
    }
    out_ += sample(x_, y_) + svg::text(x_ + kSample, y_, "f", words);
    x_ += needed;
  }

  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] int y() const { return y_; }

 private:
  int width_;
  int x_ = kMargin;
  int y_;
  std::string out_;
};

struct Seen {
  bool switched = false;
  bool links = false;
  bool missing = false;
  bool dark_holders = false;  // the kubelet did not answer
  bool silent = false;        // no report
  std::map<model::HealthState, bool> states;
};

Seen seen_in(const Fleet& fleet) {
  Seen seen;
  for (const Node& node : fleet.nodes) {
    if (!node.report) {
      seen.silent = true;
      continue;
    }
    seen.switched = seen.switched || node.report->switched;
    seen.missing = seen.missing || !node.report->missing_devices.empty();
    seen.dark_holders = seen.dark_holders || !node.report->pods;
    const auto look = [&](const model::Health& health) {
      if (render::is_not_healthy(health)) seen.states[health.state] = true;
    };
    for (const model::NeuronDevice& device : node.report->host.devices) {
      look(device.health);
      seen.links = seen.links || (!node.report->switched && device.neighbours && !device.neighbours->value.empty());
    }
    for (const model::EfaInterface& efa : node.report->host.efas) look(efa.health);
  }
  return seen;
}

void add_states(const Seen& seen, Legend& legend) {
  for (const auto state : {model::HealthState::unhealthy, model::HealthState::degraded, model::HealthState::unknown}) {
    if (!seen.states.contains(state)) continue;
    const model::Health health{state, "sample", "", ""};
    const std::string words = state == model::HealthState::unhealthy  ? "unhealthy: not offered"
                              : state == model::HealthState::degraded ? "degraded: offered"
                                                                      : "health unknown: offered";
    legend.add(words, [&](int x, int y) {
      const std::string kind(svg::state_class(health));
      return svg::rectangle({x, y - 13, 34, 18}, 4, "f" + kind) + svg::rectangle({x + 4, y - 9, 26, 10}, 1, "panel") +
             svg::rectangle({x, y - 13, 34, 18}, 4, "dev none " + kind) + svg::mark(health, x + 31, y - 11);
    });
  }
}

constexpr std::string_view kLight = R"(
.p8{fill:#cfe39a}.p9{fill:#f6b9a4}.p10{fill:#aee3e6}.p11{fill:#dcc8f4}.map .unk{fill:url(#nls-odd)}.map .numa.bad{stroke:#c44601}
.x.bad{stroke:#c44601}.x.warn{stroke:#a06c00}.x.odd{stroke:#5b6670})";
constexpr std::string_view kDark = R"(
.p8{fill:#4d671c}.p9{fill:#86442f}.p10{fill:#15656b}.p11{fill:#5d4387}.map .numa.bad{stroke:#ff7a33}
.x.bad{stroke:#ff7a33}.x.warn{stroke:#e8ab2e}.x.odd{stroke:#aab4be})";

}  // namespace

std::string style(const Scale& scale) {
  std::string sheet = "<style>.nm{font-weight:700;font-size:" + std::to_string(scale.name_size) +
                      "px}.tx{font-size:" + std::to_string(scale.text_size) +
                      "px}.map .dev{stroke-width:1.2}.map .link{stroke-width:" + std::string(scale.labels ? "2" : "1") +
                      ";fill:none}.map .efa{stroke-width:1}"
                      ".map .bad,.map .warn,.map .odd{stroke-width:2}.x{stroke-width:2;fill:none}";
  sheet.append(kLight).append("\n@media (prefers-color-scheme:dark){").append(kDark);
  return sheet.append("}\n</style>\n");
}

std::string holders(const Workloads& workloads, int width, int& y) {
  constexpr int kColumn = 380;
  const auto& all = workloads.all();
  if (all.empty()) return "";
  std::string out = section("Holders", y);
  const std::size_t shown_count = std::min(all.size(), kMostWorkloads);
  const auto columns = static_cast<std::size_t>(std::max((width - 2 * kMargin) / kColumn, 1));
  const std::size_t rows = (shown_count + columns - 1) / columns;
  const int column_width = (width - 2 * kMargin) / static_cast<int>(columns);
  for (std::size_t i = 0; i < shown_count; ++i) {
    const Workload& workload = all[i];
    const int x = kMargin + static_cast<int>(i / rows) * column_width;
    const int line = y + (static_cast<int>(i % rows) + 1) * (kLine + 2);
    const std::string words = words_of(workload);
    const int room = column_width - 60 - static_cast<int>(words.size()) * 6;
    const std::string name = render::fit(workload.name, std::max(room, 100), kSize);
    out += svg::rectangle({x, line - 13, 34, 18}, 4, "dev " + colour_class(workload.colour)) +
           svg::text(x + 17, line, "b s", workload.letters, svg::Anchor::middle) + svg::text(x + 44, line, "f", name) +
           svg::text(x + column_width - 16, line, "mut s", words, svg::Anchor::end);
  }
  y += static_cast<int>(rows) * (kLine + 2) + 6;
  if (shown_count < all.size()) {
    y += kLine;
    out += svg::text(kMargin, y, "mut f", "and " + std::to_string(all.size() - shown_count) + " more");
  }
  return out;
}

std::string unknowns(const Fleet& fleet, int width, int& y) {
  std::map<std::string, std::vector<std::string>> nodes;  // by reason
  for (const Node& node : fleet.nodes) {
    if (!node.report) nodes[node.report_missing].push_back(node.name);
  }
  if (nodes.empty() && fleet.unknown.empty()) return "";
  std::vector<std::string> lines;
  for (const auto& [reason, names] : nodes) {
    const std::string who = names.size() == 1 ? shown(names.front()) : counted(names.size(), "node");
    lines.push_back(who + ": " + (reason.empty() ? "no report" : shown(reason)));
  }
  for (const std::string& sentence : fleet.unknown) lines.push_back(shown(sentence));
  std::string out = section("Not known", y);
  for (std::size_t i = 0; i < std::min(lines.size(), kMostReasons); ++i) {
    y += kLine;
    out += svg::text(kMargin, y, "f", render::fit(lines[i], width - 2 * kMargin, kSize));
  }
  if (lines.size() > kMostReasons) {
    y += kLine;
    out += svg::text(kMargin, y, "mut f", "and " + std::to_string(lines.size() - kMostReasons) + " more");
  }
  return out;
}

std::string legend(const Fleet& fleet, const Sums& sums, int width, int& y) {
  if (sums.nodes == 0) return "";
  const Seen seen = seen_in(fleet);
  y += kHeadRoom - 10;
  std::string out = svg::line({kMargin, y, width - kMargin, y, false}, "rule");
  Legend items(width, y + 4);
  const auto box = [](int x, int at) { return render::Box{x, at - 13, 34, 18}; };
  if (sums.devices > 0) {
    items.add("device, free", [&](int x, int at) { return svg::rectangle(box(x, at), 4, "dev"); });
    items.add("held by pod 3 of workload A", [&](int x, int at) {
      return svg::rectangle(box(x, at), 4, "dev p0") + svg::text(x + 17, at, "b s", "A3", svg::Anchor::middle);
    });
  }
  if (sums.part_free > 0) {
    items.add("some of its cores are held", [&](int x, int at) {
      return svg::rectangle({x, at - 13, 17, 18}, 0, "p0") + svg::rectangle(box(x, at), 4, "dev none");
    });
  }
  if (seen.dark_holders) {
    items.add("holders unknown", [&](int x, int at) { return svg::rectangle(box(x, at), 4, "dev unk"); });
  }
  if (seen.links) {
    items.add("link", [](int x, int at) { return svg::line({x, at - 4, x + 34, at - 4, false}, "link"); });
  }
  if (seen.switched) {
    items.add("devices on one switch", [&](int x, int at) { return svg::rectangle(box(x, at), 4, "sw"); });
  }
  if (sums.efas > 0) {
    items.add("EFA interface: free, held", [](int x, int at) {
      return svg::rectangle({x + 2, at - 11, 12, 12}, 6, "efa") +
             svg::rectangle({x + 20, at - 11, 12, 12}, 6, "efa p0");
    });
  }
  add_states(seen, items);
  if (seen.missing) {
    items.add("missing", [&](int x, int at) { return svg::rectangle(box(x, at), 4, "dev none dash bad"); });
  }
  if (seen.silent) {
    items.add("node without a report", [&](int x, int at) { return svg::rectangle(box(x, at), 4, "numa dash"); });
  }
  y = items.y();
  return out + items.out();
}

}  // namespace neuron::fleet::map
