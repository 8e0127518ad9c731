#include <algorithm>
#include <utility>

#include "tools/kubectl-neuron/map_parts.h"
#include "tools/render/node_view.h"
#include "tools/render/text.h"

namespace neuron::fleet::map {
namespace {

namespace svg = render::svg;
using render::Box;

constexpr int kLeastTile = 104;

int columns_of(const Tile& tile) {
  return std::max(tile.shape.columns, 1);
}

int grid_width(const Tile& tile, const Scale& scale) {
  return columns_of(tile) * (scale.cell_width + scale.gap) - scale.gap;
}

class Drawing {
 public:
  Drawing(const Tile& tile, const TileSize& size, const Scale& scale, const Workloads& workloads, MapFormat format)
      : tile_(tile), size_(size), scale_(scale), workloads_(workloads), format_(format) {}

  [[nodiscard]] std::string draw() const {
    const Node& node = *tile_.node;
    std::string out = format_ == MapFormat::html ? tooltip(node_words()) : "";
    out += frame() + head();
    if (!node.report) return out + unknown();
    if (tile_.shape.cells.empty()) out += words_in_the_middle("no device");
    return out + links() + draw_hardware(tile_, size_, scale_, workloads_, format_);
  }

 private:
  [[nodiscard]] std::string frame() const {
    std::string classes = "numa";
    if (!tile_.node->report) classes += " dash";
    if (tile_.node->ready && !*tile_.node->ready) classes += " bad";
    return svg::rectangle({0, 0, size_.width, size_.height}, 8, classes);
  }

  // The first label of the name, since nodes of a cluster mostly share the rest.
  [[nodiscard]] std::string head() const {
    const Node& node = *tile_.node;
    const std::string name = node.name.substr(0, node.name.find('.'));
    const int room = size_.width - 2 * scale_.padding;
    std::string out = svg::text(scale_.padding, scale_.padding + scale_.name_size - 2, "nm",
                                render::fit(shown(name), room, scale_.name_size));
    const std::string_view condition = condition_of(node);
    Sums sums;
    add(sums, node);
    std::string words = !node.report            ? "no report"
                        : sums.devices == 0     ? ""
                        : sums.unknown_use != 0 ? "holders unknown"
                        : scale_.labels ? std::to_string(sums.free) + " of " + std::to_string(sums.devices) + " free"
                                        : std::to_string(sums.free) + '/' + std::to_string(sums.devices) + " free";
    std::string classes = "tx mut";
    if (!condition.empty()) {
      words = std::string(condition) + (scale_.labels && !words.empty() ? " · " + words : "");
      classes = "tx tw";
    } else if (scale_.labels && node.mode == Mode::claims) {
      words += " · claims";
    }
    return out + svg::text(scale_.padding, scale_.padding + scale_.name_size + scale_.text_size, classes,
                           render::fit(words, room, scale_.text_size));
  }

  [[nodiscard]] std::string words_in_the_middle(std::string_view words) const {
    return svg::text(size_.width / 2, (scale_.head + size_.height) / 2, "tx mut", words, svg::Anchor::middle);
  }

  [[nodiscard]] std::string unknown() const {
    const model::Health state{model::HealthState::unknown, "unread", "", ""};
    const int middle = (scale_.head + size_.height) / 2;
    std::string out = svg::mark(state, size_.width / 2, middle - scale_.text_size - 2);
    std::string words;
    for (const auto& [resource, amount] : tile_.node->allocatable) {
      if (amount <= 0) continue;
      const auto slash = resource.find('/');
      words += (words.empty() ? "" : ", ") + std::to_string(amount) + ' ' +
               (slash == std::string::npos ? resource : resource.substr(slash + 1));
    }
    if (words.empty()) words = "nothing allocatable";
    return out + svg::text(size_.width / 2, middle + scale_.text_size + 4, "tx mut",
                           render::fit(shown(words), size_.width - 2 * scale_.padding, scale_.text_size),
                           svg::Anchor::middle);
  }

  // One path for all links between cells that are side by side, and short ends where a torus closes.
  [[nodiscard]] std::string links() const {
    const render::NodeShape& shape = tile_.shape;
    if (shape.kind == render::NodeShape::Kind::switched) {
      const Box first = device_box(tile_, size_, scale_, {0, 0});
      const Box last = device_box(tile_, size_, scale_, {shape.rows - 1, shape.columns - 1});
      const int rim = std::max(scale_.padding / 2, 3);
      return svg::rectangle(
          {first.x - rim, first.y - rim, last.right() - first.x + 2 * rim, last.bottom() - first.y + 2 * rim}, 6, "sw");
    }
    std::string path;
    for (const render::DeviceLink& link : shape.links)
      path += link_path(shape.cells.at(link.from), shape.cells.at(link.to));
    return path.empty() ? "" : "<path class=\"link\" d=\"" + path + "\"/>\n";
  }

  [[nodiscard]] std::string link_path(render::GridCell a, render::GridCell b) const {
    if (std::pair(b.row, b.column) < std::pair(a.row, a.column)) std::swap(a, b);
    const Box from = device_box(tile_, size_, scale_, a);
    const Box to = device_box(tile_, size_, scale_, b);
    const int x = from.x + from.width / 2;
    const int y = from.y + from.height / 2;
    const bool torus = tile_.shape.kind == render::NodeShape::Kind::torus;
    const int end = std::max(scale_.gap / 2, 3);
    const auto move = [](int at_x, int at_y) { return "M" + std::to_string(at_x) + ' ' + std::to_string(at_y); };
    if (a.row == b.row && b.column - a.column == 1) return move(from.right(), y) + 'H' + std::to_string(to.x);
    if (a.column == b.column && b.row - a.row == 1) return move(x, from.bottom()) + 'V' + std::to_string(to.y);
    if (!torus) return "";
    if (a.row == b.row) {
      return move(from.x - end, y) + 'H' + std::to_string(from.x) + move(to.right(), y) + 'H' +
             std::to_string(to.right() + end);
    }
    return move(x, from.y - end) + 'V' + std::to_string(from.y) + move(x, to.bottom()) + 'V' +
           std::to_string(to.bottom() + end);
  }

  [[nodiscard]] std::string node_words() const {
    const Node& node = *tile_.node;
    std::string words = shown(node.name);
    if (!node.instance_type.empty()) words += " · " + shown(node.instance_type);
    const std::string_view condition = condition_of(node);
    if (!condition.empty()) words.append(" · ").append(condition);
    if (!node.report) return words + " · " + shown(node.report_missing);
    Sums sums;
    add(sums, node);
    words += " · " + devices_words(sums);
    if (!node.report->host.driver_version.empty()) words += " · driver " + shown(node.report->host.driver_version);
    if (node.report->host.lnc) words += " · LNC " + std::to_string(node.report->host.lnc->value);
    return words;
  }

  const Tile& tile_;
  const TileSize& size_;
  const Scale& scale_;
  const Workloads& workloads_;
  MapFormat format_;
};

}  // namespace

std::string tooltip(const std::string& words) {
  return "<title>" + render::xml_text(shown(words)) + "</title>";
}

render::Box device_box(const Tile& tile, const TileSize& size, const Scale& scale, const render::GridCell& cell) {
  const int left = (size.width - grid_width(tile, scale)) / 2;
  return {left + cell.column * (scale.cell_width + scale.gap), scale.head + cell.row * (scale.cell_height + scale.gap),
          scale.cell_width, scale.cell_height};
}

Scale scale_for(std::size_t nodes) {
  constexpr std::size_t kFew = 12;
  constexpr std::size_t kSome = 60;
  if (nodes <= kFew) return {52, 36, 14, 14, 58, 14, 12, 12, 9, true};
  if (nodes <= kSome) return {34, 24, 8, 10, 45, 12, 10, 9, 8, true};
  return {24, 17, 5, 7, 36, 10, 9, 5, 7, false};
}

Tile tile_of(const Node& node) {
  return {&node, node.report ? render::shape_of(*node.report) : render::NodeShape{}};
}

TileSize size_of(const Tile& tile, const Scale& scale) {
  TileSize size;
  size.width = std::max(grid_width(tile, scale) + 2 * scale.padding + scale.gap, kLeastTile);
  const int rows = std::min(tile.shape.rows, static_cast<int>(kMostDevices));
  const int grid = std::max(rows * (scale.cell_height + scale.gap), 2 * (scale.text_size + 6));
  size.height = scale.head + grid + efas_height(tile, size.width, scale) + scale.padding;
  return size;
}

std::string draw_tile(const Tile& tile, const TileSize& size, const Scale& scale, const Workloads& workloads,
                      MapFormat format) {
  return Drawing(tile, size, scale, workloads, format).draw();
}

std::string_view condition_of(const Node& node) {
  if (node.ready && !*node.ready) return "not ready";
  return node.unschedulable ? "cordoned" : "";
}

}  // namespace neuron::fleet::map
