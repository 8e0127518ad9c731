#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/node_report.h"

// The picture of a node, in three steps: its shape in cells, its layout in pixels, its parts as SVG elements. Internal
// to node_svg(). Pure.
namespace neuron::render {

struct GridCell {
  int row = 0;
  int column = 0;
  friend bool operator==(const GridCell&, const GridCell&) = default;
};

// A link between two devices, by index of the host, from < to.
struct DeviceLink {
  int from = 0;
  int to = 0;
  bool assumed = false;  // from the official table, not from one of the two devices
  friend bool operator==(const DeviceLink&, const DeviceLink&) = default;
};

struct NodeShape {
  enum class Kind {
    none,      // no device
    single,    // one
    torus,     // 4x4, rotated so that switches and NUMA nodes stay in one piece
    ring,      // two rows that close at both ends
    line,      // a row, or rows that turn at their ends
    switched,  // every device reaches every other alike
    loose,     // in the order of their numbers; links, if any are known, as text
  };
  Kind kind = Kind::none;
  int rows = 0;
  int columns = 0;
  std::map<int, GridCell> cells;  // by index; of missing devices too
  std::vector<DeviceLink> links;  // ascending; none where they mean nothing (switched)
};

// Linked devices stand side by side where the links allow it.
[[nodiscard]] NodeShape shape_of(const NodeReport& report);

struct CellFrame {
  enum class Level { numa_node, pci };
  Level level = Level::numa_node;
  GridCell first;  // top left
  GridCell last;   // bottom right, inclusive
  std::string title;
  bool assumed = false;  // from the official table
};

// The frames of one level: one per NUMA node or PCI parent when each is a rectangle of the grid that holds no device of
// another; else none at all. Cells of missing devices may lie in any.
[[nodiscard]] std::vector<CellFrame> frames_of(const NodeReport& report, const NodeShape& shape,
                                               CellFrame::Level level);

// Whether every one of `inner` lies wholly inside, or wholly outside, each of `outer`.
[[nodiscard]] bool nested(const std::vector<CellFrame>& inner, const std::vector<CellFrame>& outer);

// "PCI switch 0000:b9", "PCI host bridge 0000:10"; of an interface or device.
[[nodiscard]] std::string pci_title(const std::string& key, const std::string& pcie_root);

// An interface below the one device, or the two side by side, that it is the nearest of.
struct EfaDock {
  std::size_t position = 0;  // in host.efas
  int row = 0;
  int first_column = 0;
  int last_column = 0;
  int slot = 0;  // from the device downwards, where several share the place
};

// The docks of the interfaces that have one; the others stand below the machine.
[[nodiscard]] std::vector<EfaDock> dock_efas(const NodeReport& report, const NodeShape& shape);

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

namespace neuron::render::svg {

// Elements, one per line. Classes are those of style().
enum class Anchor { start, middle, end };
[[nodiscard]] std::string rectangle(const Box& box, int radius, std::string_view classes);
[[nodiscard]] std::string line(const Line& line, std::string_view classes);
// `words` need no escaping.
[[nodiscard]] std::string text(int x, int y, std::string_view classes, std::string_view words,
                               Anchor anchor = Anchor::start);

// Style sheet and hatches: light, and dark in a media query.
[[nodiscard]] std::string style();

// The mark of a state around its centre, 14 pixels high: octagon with ×, triangle with !, circle with ?. "" for
// healthy.
[[nodiscard]] std::string mark(const model::Health& health, int x, int y);
[[nodiscard]] std::string_view state_class(const model::Health& health);  // "bad", "warn", "odd", "" for healthy

// Pods by the letters and colours that they have in the picture, in order of their names.
class PodMarks {
 public:
  explicit PodMarks(const NodeReport& report);
  [[nodiscard]] bool known() const { return known_; }
  [[nodiscard]] bool empty() const { return names_.empty(); }
  [[nodiscard]] const std::vector<int>& of_device(int index) const { return at(devices_, index); }
  [[nodiscard]] const std::vector<int>& of_core(int id) const { return at(cores_, id); }
  [[nodiscard]] const std::vector<int>& of_efa(const std::string& name) const { return at(efas_, name); }
  [[nodiscard]] const std::string& name(int pod) const { return names_[static_cast<std::size_t>(pod)]; }  // "ns/pod"
  [[nodiscard]] int number(const PodUse& use) const;
  [[nodiscard]] static std::string letters(int pod);  // A to Z, then AA
  [[nodiscard]] static std::string colour(int pod);   // class

 private:
  template <typename Key>
  [[nodiscard]] static const std::vector<int>& at(const std::map<Key, std::vector<int>>& pods, const Key& key) {
    static const std::vector<int> kNone;
    const auto found = pods.find(key);
    return found == pods.end() ? kNone : found->second;
  }

  bool known_ = false;
  std::vector<std::string> names_;
  std::map<int, std::vector<int>> devices_;
  std::map<int, std::vector<int>> cores_;
  std::map<std::string, std::vector<int>> efas_;
};

// Frames, links, devices and interfaces.
[[nodiscard]] std::string machine(const NodeReport& report, const NodeLayout& layout, const PodMarks& holders);

// The sections below the machine. Each begins at `y` and moves it behind its end.
// NUMA nodes without a frame.
[[nodiscard]] std::string numa_nodes(const NodeReport& report, const NodeLayout& layout, int& y);
[[nodiscard]] std::string findings(const NodeReport& report, int& y);
[[nodiscard]] std::string holdings(const NodeReport& report, const PodMarks& holders, int& y);
[[nodiscard]] std::string legend(const NodeReport& report, const NodeLayout& layout, const PodMarks& holders, int& y);

}  // namespace neuron::render::svg
