#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/kubectl-neuron/fleet.h"
#include "tools/kubectl-neuron/map.h"
#include "tools/render/node_svg.h"

// The parts of the fleet's picture, internal to draw_map(). Pure.
namespace neuron::fleet::map {

// A pod's name without what its controller added: "llama-12" is number 12 of "llama", "chat-7d9f4b8c6d-x2x5z" is one of
// "chat".
struct PodName {
  std::string workload;
  std::string number;  // digits; "" where the name has none
};
[[nodiscard]] PodName parse_pod_name(const std::string& pod);

// Pods that differ only in what their controller added; they share colour and letters.
struct Workload {
  std::string name;     // "namespace/workload", printable
  std::string letters;  // "A", "AB": in order of the names
  std::size_t colour = 0;
  std::size_t pods = 0;
  std::size_t devices = 0;  // held, or some of their cores
  std::size_t efas = 0;
};

// All workloads that hold hardware, in order of their names. A colour is chosen by name, so that it mostly stays when
// others come and go; as long as there are enough, no two have the same.
class Workloads {
 public:
  static constexpr std::size_t kColours = 12;

  explicit Workloads(const Fleet& fleet);
  [[nodiscard]] const std::vector<Workload>& all() const { return workloads_; }
  [[nodiscard]] const Workload& of(const report::PodUse& use) const;

 private:
  void choose_colours();

  std::vector<Workload> workloads_;
  std::map<std::string, std::size_t> numbers_;  // by name
};

[[nodiscard]] std::string colour_class(std::size_t colour);  // "p0"

// Sums over some nodes.
struct Sums {
  std::size_t nodes = 0;
  std::size_t without_report = 0;
  std::size_t not_ready = 0;
  std::size_t devices = 0;
  std::size_t free = 0;         // healthy or degraded, and not held
  std::size_t part_free = 0;    // some cores are held, others not
  std::size_t unknown_use = 0;  // the kubelet did not answer
  std::size_t unhealthy = 0;    // and missing
  std::size_t degraded = 0;     // and of unknown health
  std::size_t efas = 0;
  std::size_t free_efas = 0;
  std::size_t unknown_efas = 0;  // whose holders are unknown
};
void add(Sums& sums, const Node& node);
[[nodiscard]] std::string devices_words(const Sums& sums);  // "48 devices: 20 free, 27 held, 1 unhealthy"

[[nodiscard]] std::string efas_words(const Sums& sums);  // "32 EFA interfaces: 8 free"

// Sizes in pixels: large for few nodes, small for many.
struct Scale {
  int cell_width;
  int cell_height;
  int gap;      // between devices
  int padding;  // of a tile
  int head;     // of a tile, above its devices
  int name_size;
  int text_size;
  int efa;          // of an interface's mark
  int mark_tenths;  // of a mark's own size
  bool labels;      // numbers of pods, and whole words
};
[[nodiscard]] Scale scale_for(std::size_t nodes);

// Everything that is drawn of a node.
struct Tile {
  const Node* node = nullptr;
  render::NodeShape shape;  // of its devices; none without a report
};
[[nodiscard]] Tile tile_of(const Node& node);

// Size that the tile needs; those of one group share the largest.
struct TileSize {
  int width = 0;
  int height = 0;
};
[[nodiscard]] TileSize size_of(const Tile& tile, const Scale& scale);

// The tile with its left upper corner at (0, 0).
[[nodiscard]] std::string draw_tile(const Tile& tile, const TileSize& size, const Scale& scale,
                                    const Workloads& workloads, MapFormat format);

// The position of a device in its tile.
[[nodiscard]] render::Box device_box(const Tile& tile, const TileSize& size, const Scale& scale,
                                     const render::GridCell& cell);
inline constexpr std::size_t kMostDevices = 64;  // that are drawn of a node

// Devices and interfaces of a tile with a report (map_device.cpp).
[[nodiscard]] std::string draw_hardware(const Tile& tile, const TileSize& size, const Scale& scale,
                                        const Workloads& workloads, MapFormat format);
[[nodiscard]] int efas_height(const Tile& tile, int width, const Scale& scale);

// A title element.
[[nodiscard]] std::string tooltip(const std::string& words);

// The rules that the picture has beside those of render::svg::style().
[[nodiscard]] std::string style(const Scale& scale);

// Sections below the tiles, from `y` on, which they move behind their end.
[[nodiscard]] std::string holders(const Workloads& workloads, int width, int& y);
[[nodiscard]] std::string unknowns(const Fleet& fleet, int width, int& y);
[[nodiscard]] std::string legend(const Fleet& fleet, const Sums& sums, int width, int& y);

// Foreign text that is ready for render::svg::text().
[[nodiscard]] std::string shown(const std::string& text);

// The worst of the node's own condition: not ready, cordoned; "" where nothing is wrong.
[[nodiscard]] std::string_view condition_of(const Node& node);

}  // namespace neuron::fleet::map
