#include "tools/kubectl-neuron/map.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/counts.h"
#include "tools/kubectl-neuron/map_parts.h"
#include "tools/render/text.h"

namespace neuron::fleet {
namespace {

namespace svg = render::svg;
using map::Scale;
using map::Sums;
using map::Tile;
using map::TileSize;
using map::Workloads;

constexpr int kTop = 112;  // of the tiles, below title and sums
constexpr int kGroupHead = 30;
constexpr int kGroupGap = 18;

// Nodes of one instance type.
struct Group {
  std::string type;
  std::vector<Tile> tiles;
  TileSize size;
  Sums sums;
};

// In order of the types, unknown ones last.
std::vector<Group> groups_of(const Fleet& fleet, const Scale& scale) {
  std::map<std::pair<bool, std::string>, Group> by_type;
  std::size_t count = 0;
  for (const Node& node : fleet.nodes) {
    Group& group = by_type[{node.instance_type.empty(), node.instance_type}];
    group.type = node.instance_type.empty() ? "unknown instance type" : map::shown(node.instance_type);
    map::add(group.sums, node);
    if (count++ >= kMostTiles) continue;
    group.tiles.push_back(map::tile_of(node));
    const TileSize size = map::size_of(group.tiles.back(), scale);
    group.size = {std::max(group.size.width, size.width), std::max(group.size.height, size.height)};
  }
  std::vector<Group> groups;
  for (auto& [key, group] : by_type) groups.push_back(std::move(group));
  return groups;
}

Sums sums_of(const Fleet& fleet) {
  Sums sums;
  for (const Node& node : fleet.nodes) map::add(sums, node);
  return sums;
}

// Wide enough that the picture of many nodes is not much higher than wide.
int width_for(std::size_t nodes) {
  constexpr std::size_t kMany = 60;
  constexpr std::size_t kVeryMany = 400;
  if (nodes <= kMany) return render::kPictureWidth;
  return nodes <= kVeryMany ? 1800 : 2800;
}

std::string group_words(const Group& group) {
  const Sums& sums = group.sums;
  std::string words = counted(sums.nodes, "node");
  if (sums.without_report < sums.nodes) words += " · " + map::devices_words(sums);
  if (sums.efas > 0) words += " · " + map::efas_words(sums);
  if (sums.without_report > 0) words += " · " + std::to_string(sums.without_report) + " without a report";
  return words;
}

std::string draw_group(const Group& group, const Scale& scale, const Workloads& workloads, MapFormat format, int width,
                       int& y) {
  if (group.tiles.empty()) return "";
  const int gap = std::max(scale.gap, 8);
  const int columns = std::max((width - 2 * render::kMargin + gap) / (group.size.width + gap), 1);
  std::string out = svg::text(render::kMargin, y + 18, "hd", render::fit(group.type, 300, 15)) +
                    svg::text(render::kMargin + 190, y + 18, "f mut", render::fit(group_words(group), width - 240, 12));
  y += kGroupHead;
  for (std::size_t i = 0; i < group.tiles.size(); ++i) {
    const int column = static_cast<int>(i) % columns;
    const int row = static_cast<int>(i) / columns;
    const int x = render::kMargin + column * (group.size.width + gap);
    out += "<g transform=\"translate(" + std::to_string(x) + ' ' + std::to_string(y + row * (group.size.height + gap)) +
           ")\">" + map::draw_tile(group.tiles[i], group.size, scale, workloads, format) + "</g>\n";
  }
  const int rows = (static_cast<int>(group.tiles.size()) + columns - 1) / columns;
  y += rows * (group.size.height + gap) - gap + kGroupGap;
  return out;
}

std::size_t waiting_pods(const Fleet& fleet) {
  return static_cast<std::size_t>(std::ranges::count_if(
      fleet.pods, [](const Pod& pod) { return pod.node.empty() && !has_ended(pod) && asks_for_hardware(pod); }));
}

bool is_unread(const Fleet& fleet) {
  return fleet.nodes.empty() && !fleet.nodes_unread.empty();
}

std::string nodes_words(const Fleet& fleet, const std::string& noun) {
  return is_unread(fleet) ? plural(noun) + " unknown" : counted(fleet.nodes.size(), noun);
}

std::string devices_words(const Fleet& fleet, const Sums& sums) {
  return is_unread(fleet) ? "devices unknown" : map::devices_words(sums);
}

std::string state_words(const Fleet& fleet, const Sums& sums) {
  if (is_unread(fleet)) return "nothing known";

  std::string words = sums.unhealthy > 0 ? std::to_string(sums.unhealthy) + " unhealthy" : "";
  const auto add = [&](std::size_t count, const std::string& what) {
    if (count > 0) words += (words.empty() ? "" : ", ") + std::to_string(count) + ' ' + what;
  };
  add(sums.degraded, "degraded or unknown");
  add(sums.not_ready, "not ready");
  add(sums.without_report, "without a report");
  return words.empty() ? "no problem found" : words;
}

std::string head(const Fleet& fleet, const Sums& sums, const Workloads& workloads, int width) {
  const int right = width - render::kMargin;
  std::size_t pods = 0;
  for (const map::Workload& workload : workloads.all()) pods += workload.pods;
  const std::size_t waiting = waiting_pods(fleet);
  std::string pods_words = counted(pods, "pod") + " hold hardware";
  if (pods == 1) pods_words = "1 pod holds hardware";
  if (sums.nodes == sums.without_report && sums.nodes > 0) pods_words = "holders unknown";
  if (waiting > 0) pods_words += " · " + std::to_string(waiting) + (waiting == 1 ? " waits" : " wait");
  if (sums.efas > 0) pods_words += " · " + map::efas_words(sums);
  return svg::text(render::kMargin, 44, "t1", nodes_words(fleet, "Neuron node")) +
         svg::text(right, 44, "t2 mut", map::shown(fleet.read_at), svg::Anchor::end) +
         svg::text(render::kMargin, 68, "t2", devices_words(fleet, sums)) +
         svg::text(render::kMargin, 89, "t2 mut", pods_words) +
         svg::text(right, 89, "t2 b", state_words(fleet, sums), svg::Anchor::end);
}

std::string picture(const Fleet& fleet, MapFormat format) {
  const Scale scale = map::scale_for(fleet.nodes.size());
  const int width = width_for(fleet.nodes.size());
  const Workloads workloads(fleet);
  const Sums sums = sums_of(fleet);
  int y = kTop;
  std::string body;
  for (const Group& group : groups_of(fleet, scale)) body += draw_group(group, scale, workloads, format, width, y);
  if (fleet.nodes.size() > kMostTiles) {
    body += svg::text(render::kMargin, y += 16, "t2 mut",
                      "and " + std::to_string(fleet.nodes.size() - kMostTiles) + " more nodes");
  }
  body += map::unknowns(fleet, width, y);
  body += map::holders(workloads, width, y);
  body += map::legend(fleet, sums, width, y);
  const std::string height = std::to_string(y + render::kMargin);
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"map\" width=\"" + std::to_string(width) + "\" height=\"" +
      height + "\" viewBox=\"0 0 " + std::to_string(width) + ' ' + height +
      "\" role=\"img\" aria-labelledby=\"map-title map-desc\">\n<title id=\"map-title\">kubectl neuron map: " +
      nodes_words(fleet, "node") + "</title>\n<desc id=\"map-desc\">" +
      render::xml_text(devices_words(fleet, sums) + ". " + state_words(fleet, sums) + '.') + "</desc>\n";
  out += svg::style() + map::style(scale);
  out += svg::rectangle({0, 0, width, y + render::kMargin}, 0, "bg");
  return out + head(fleet, sums, workloads, width) + body + "</svg>\n";
}

// The policy keeps a browser from running or loading anything, whatever a name may hold.
constexpr std::string_view kPageBegin = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>kubectl neuron map</title>
<style>body{margin:0;background:#fff}svg{display:block;margin:auto;max-width:100%;height:auto}.d:hover rect{stroke-width:3}
@media (prefers-color-scheme:dark){body{background:#0d1117}}</style></head><body>
)";

}  // namespace

std::string draw_map(const Fleet& fleet, MapFormat format) {
  if (format == MapFormat::svg) return picture(fleet, format);
  return std::string(kPageBegin) + picture(fleet, format) + "</body></html>\n";
}

namespace {

Result<void> write_file(const std::string& path, const std::string& text, bool replaces) {
  std::FILE* file = std::fopen(path.c_str(), replaces ? "we" : "wxe");
  if (file == nullptr && errno == EEXIST) {
    return fail(ErrorCode::failed_precondition, printable(path) + " exists; --force replaces it");
  }
  if (file == nullptr) return fail(error_from_errno(errno, printable(path)));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) == 0 && written) return {};
  const Error why = error_from_errno(written ? errno : error, printable(path));
  if (!replaces) ::unlink(path.c_str());  // half a picture
  return fail(why);
}

// By -o, else by the end of the file's name.
Result<MapFormat> format_of(const MapOptions& own) {
  if (own.format == "html" || (own.format.empty() && own.file.ends_with(".html"))) return MapFormat::html;
  const std::string name = own.file.substr(own.file.rfind('/') + 1);
  if (own.format == "svg" || name.ends_with(".svg") || name.find('.', 1) == std::string::npos) return MapFormat::svg;
  return fail(ErrorCode::invalid_argument, printable(name) + ": only .svg and .html are drawn; -o says which it is");
}

}  // namespace

void add_map(CLI::App& command, MapOptions& own) {
  command.add_option("-o,--output", own.format, "svg, or html with a tooltip on each device")
      ->check(CLI::IsMember({"svg", "html"}))
      ->type_name("FORMAT")
      ->take_last();
  command.add_option("FILE", own.file, "A new file, or - for standard output")
      ->type_name("")
      ->required()
      ->check(needs_name);
  command.add_option("NODE", own.nodes, "Only these nodes")->type_name("");
  command.add_flag("--force", own.force, "Replace an existing FILE");
}

int run_map(const Options& options, const MapOptions& own) {
  const auto format = format_of(own);
  if (!format) return fail_with(format.error());
  auto fleet = read_fleet(options, {.context = false});
  if (!fleet) return fail_with(fleet.error());
  print_unknown(*fleet);
  if (const auto kept = keep_nodes(*fleet, own.nodes); !kept) return fail_with(kept.error());
  std::erase_if(fleet->nodes, [](const Node& node) { return !has_hardware(node); });
  const int code = is_unread(*fleet) ? kExitUnknown : kExitOk;
  const std::string picture = draw_map(*fleet, *format);
  if (own.file == "-") return print(picture, code);
  const auto written = write_file(own.file, picture, own.force);
  return written ? code : fail_with(written.error());
}

}  // namespace neuron::fleet
