#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/node_svg_layout.h"

// The parts of a node's picture as SVG elements. Internal to node_svg(). Pure.
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
class Holders {
 public:
  explicit Holders(const NodeReport& report);
  [[nodiscard]] bool known() const { return known_; }
  [[nodiscard]] bool empty() const { return names_.empty(); }
  [[nodiscard]] const std::vector<int>& of_device(int index) const { return at(devices_, index); }
  [[nodiscard]] const std::vector<int>& of_core(int id) const { return at(cores_, id); }
  [[nodiscard]] const std::vector<int>& of_efa(const std::string& name) const;
  [[nodiscard]] const std::string& name(int pod) const { return names_[static_cast<std::size_t>(pod)]; }  // "ns/pod"
  [[nodiscard]] int number(const PodUse& use) const;
  [[nodiscard]] static std::string letters(int pod);  // A to Z, then AA
  [[nodiscard]] static std::string colour(int pod);   // class

 private:
  using Pods = std::map<int, std::vector<int>>;
  [[nodiscard]] static const std::vector<int>& at(const Pods& pods, int key);
  bool known_ = false;
  std::vector<std::string> names_;
  Pods devices_;
  Pods cores_;
  std::map<std::string, std::vector<int>> efas_;
};

// Frames, links, devices and interfaces.
[[nodiscard]] std::string machine(const NodeReport& report, const NodeLayout& layout, const Holders& holders);

// The sections below the machine. Each begins at `y` and moves it behind its end.
// NUMA nodes without a frame.
[[nodiscard]] std::string numa_nodes(const NodeReport& report, const NodeLayout& layout, int& y);
[[nodiscard]] std::string findings(const NodeReport& report, int& y);
[[nodiscard]] std::string holdings(const NodeReport& report, const Holders& holders, int& y);
[[nodiscard]] std::string legend(const NodeReport& report, const NodeLayout& layout, const Holders& holders, int& y);

}  // namespace neuron::render::svg
