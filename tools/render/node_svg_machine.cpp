#include "tools/render/node_svg_parts.h"
#include "tools/render/svg_text.h"

namespace neuron::render::svg {
namespace {

std::string frame(const Frame& at) {
  constexpr int kTitleSize = 12;
  const bool numa = at.level == Frame::Level::numa_node;
  std::string classes = numa ? "numa" : "pci";
  if (at.assumed) classes += " dash";
  const std::string words = fit(at.title, at.box.right() - at.title_x - 8, kTitleSize);
  return rectangle(at.box, numa ? 14 : 10, classes) +
         text(at.title_x, at.box.y + 18, numa ? "b f mut" : "f mut", words);
}

std::string wrap_end(const WrapEnd& end) {
  return "<circle class=\"ghost\" cx=\"" + std::to_string(end.x) + "\" cy=\"" + std::to_string(end.y) +
         "\" r=\"12\"/>\n" + text(end.x, end.y + 4, "s", std::to_string(end.target), Anchor::middle);
}

}  // namespace

std::string machine(const NodeReport& report, const NodeLayout& layout, const Holders& holders) {
  std::string out;
  for (const Frame& at : layout.frames) out += frame(at);
  for (const Line& link : layout.links) out += line(link, "link");
  for (const WrapEnd& end : layout.wraps) out += wrap_end(end);
  if (const auto& box = layout.fabric_switch) {
    out += rectangle(*box, 8, "sw") +
           text(box->x + box->width / 2, box->y + 17, "b f", "switch: all devices are equally near", Anchor::middle);
  }
  for (const DeviceBox& at : layout.devices) out += device(report, layout, at, holders);
  for (const EfaGroup& group : layout.efa_groups) {
    out += text(group.title.x, group.title.y + 15, "f mut", fit(group.text, group.title.width, 12));
  }
  for (const EfaBox& at : layout.efas) out += efa(report, at, holders);
  return out;
}

}  // namespace neuron::render::svg
