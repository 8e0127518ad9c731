#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/render/node_report.h"
#include "tools/render/node_svg_shape.h"

// Where the parts of a node's picture are, in pixels from the top left corner. Arithmetic over a report, without SVG.
// Pure.
namespace neuron::render {

inline constexpr int kPictureWidth = 1200;
inline constexpr int kMargin = 24;
inline constexpr int kEfaHeight = 34;
inline constexpr int kCoreHeight = 24;
inline constexpr int kReasonHeight = 15;
inline constexpr int kInset = 13;  // of the texts of a device, from its edge

struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  [[nodiscard]] int right() const { return x + width; }
  [[nodiscard]] int bottom() const { return y + height; }
};

struct DeviceBox {
  int index = 0;                        // of the host
  std::optional<std::size_t> position;  // in host.devices; nullopt: the type has it, the driver does not show it
  Box box;
  std::vector<int> elsewhere;  // devices that it is linked to and that no line leads to; ascending
};

struct EfaBox {
  std::size_t position = 0;  // in host.efas
  Box box;
};

// A NUMA node, or a PCI switch or host bridge inside it.
struct Frame {
  CellFrame::Level level = CellFrame::Level::numa_node;
  Box box;
  int title_x = 0;  // left edge of the title, clear of the links
  std::string title;
  bool assumed = false;  // of the official table
};

struct Line {
  int x1 = 0;
  int y1 = 0;
  int x2 = 0;
  int y2 = 0;
  bool assumed = false;
};

// The end of a wrap-around link, which continues at the other side: a circle with the other device's number.
struct WrapEnd {
  int x = 0;
  int y = 0;
  int target = 0;
};

// Interfaces that are not beside one device or two, by NUMA node and PCI parent.
struct EfaGroup {
  Box title;
  std::string text;
};

struct NodeLayout {
  NodeShape shape;
  std::vector<Frame> frames;  // NUMA nodes first
  bool numa_framed = false;   // else each device shows its own node
  bool pci_framed = false;
  std::vector<DeviceBox> devices;  // ascending index
  std::vector<EfaBox> efas;        // beside devices, then the others
  std::vector<Line> links;
  std::vector<WrapEnd> wraps;
  std::optional<Box> fabric_switch;  // links switched devices
  std::vector<EfaGroup> efa_groups;
  int core_rows = 0;         // of every device
  bool holder_line = false;  // every device has room for its holder
  int reason_lines = 0;      // room that every device has for a finding
  int bottom = 0;            // of all this
};

// `top`: where the machine may begin.
[[nodiscard]] NodeLayout lay_out(const NodeReport& report, int top);

// The reason of a verdict in the lines that it takes in a device box of this width: one, or two.
[[nodiscard]] std::vector<std::string> reason_words(const model::Health& health, int device_width);

[[nodiscard]] bool is_not_healthy(const model::Health& health);  // assessed, and not healthy

}  // namespace neuron::render
