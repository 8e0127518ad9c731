#include <algorithm>
#include <set>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/map_parts.h"
#include "tools/render/text.h"

namespace neuron::fleet::map {
namespace {

namespace svg = render::svg;
using render::Box;
using render::NodeReport;

constexpr std::size_t kMostEfas = 64;
constexpr int kHatchBand = 4;  // around a device that is not healthy

std::size_t efas_of(const Tile& tile) {
  return tile.node->report ? std::min(tile.node->report->host.efas.size(), kMostEfas) : 0;
}

// Marks of interfaces: rows of about the same length.
struct EfaGrid {
  int rows = 0;
  int per_row = 1;
  int step = 0;
};

EfaGrid efa_grid(const Tile& tile, int width, const Scale& scale) {
  EfaGrid grid;
  grid.step = scale.efa + std::max(scale.efa / 3, 1);
  const int count = static_cast<int>(efas_of(tile));
  const int most = std::max((width - 2 * scale.padding) / grid.step, 1);
  grid.rows = (count + most - 1) / most;
  if (grid.rows > 0) grid.per_row = (count + grid.rows - 1) / grid.rows;
  return grid;
}

// Holders of a node's hardware, by index of report.pods.
struct Use {
  std::map<int, std::vector<std::size_t>> devices;
  std::map<int, std::size_t> cores;
  std::map<std::string, std::size_t> efas;
};

Use use_of(const NodeReport& report) {
  Use use;
  for (std::size_t i = 0; report.pods && i < report.pods->size(); ++i) {
    const report::PodUse& pod = (*report.pods)[i];
    for (const int device : pod.devices) use.devices[device].push_back(i);
    for (const int core : pod.cores) use.cores.emplace(core, i);
    for (const std::string& efa : pod.efas) use.efas.emplace(efa, i);
  }
  return use;
}

// A run of a device's logical cores with one holder, or free.
struct Part {
  const report::PodUse* pod = nullptr;  // nullptr: free
  std::size_t cores = 0;
};

class Drawing {
 public:
  Drawing(const Tile& tile, const TileSize& size, const Scale& scale, const Workloads& workloads, MapFormat format)
      : tile_(tile),
        size_(size),
        scale_(scale),
        workloads_(workloads),
        tooltips_(format == MapFormat::html),
        use_(use_of(*tile.node->report)) {}

  [[nodiscard]] std::string devices() const {
    std::string out;
    std::size_t drawn = 0;
    for (const auto& [index, cell] : tile_.shape.cells) {
      if (drawn++ == kMostDevices) break;
      out += device(index, device_box(tile_, size_, scale_, cell));
    }
    return out;
  }

  [[nodiscard]] std::string efas() const {
    const EfaGrid grid = efa_grid(tile_, size_.width, scale_);
    const int top = size_.height - scale_.padding - grid.rows * grid.step + grid.step - scale_.efa;
    const int count = static_cast<int>(efas_of(tile_));
    const int left = (size_.width - grid.per_row * grid.step + grid.step - scale_.efa) / 2;
    std::string out;
    for (int i = 0; i < count; ++i) {
      const Box box{left + i % grid.per_row * grid.step, top + i / grid.per_row * grid.step, scale_.efa, scale_.efa};
      out += interface(report().host.efas[static_cast<std::size_t>(i)], box);
    }
    return out;
  }

 private:
  [[nodiscard]] const NodeReport& report() const { return *tile_.node->report; }

  [[nodiscard]] std::string group(const std::string& words) const {
    return tooltips_ ? "<g class=\"d\">" + tooltip(words) : "";
  }
  [[nodiscard]] std::string group_end() const { return tooltips_ ? "</g>\n" : ""; }

  [[nodiscard]] std::string mark(const model::Health& health, int x, int y) const {
    return "<g transform=\"translate(" + std::to_string(x) + ' ' + std::to_string(y) + ") scale(." +
           std::to_string(scale_.mark_tenths) + ")\">" + svg::mark(health, 0, 0) + "</g>\n";
  }

  [[nodiscard]] std::vector<Part> parts_of(std::size_t position) const {
    const NodeReport& node = report();
    const auto holders = use_.devices.find(node.host.devices[position].index);
    if (holders == use_.devices.end()) return {{nullptr, 1}};
    const report::PodUse* first = &(*node.pods)[holders->second.front()];
    if (position >= node.core_ids.size() || node.core_ids[position].empty()) return {{first, 1}};
    std::vector<Part> parts;
    for (const int id : node.core_ids[position]) {
      const auto found = use_.cores.find(id);
      const report::PodUse* pod = found == use_.cores.end() ? nullptr : &(*node.pods)[found->second];
      if (parts.empty() || parts.back().pod != pod) parts.push_back({pod, 0});
      ++parts.back().cores;
    }
    if (parts.size() == 1 && parts.front().pod == nullptr) parts.front().pod = first;  // by claim, cores not named
    return parts;
  }

  // The workload's letters with the pod's number where both fit.
  [[nodiscard]] std::string label_of(const report::PodUse& pod, int width) const {
    const std::string& letters = workloads_.of(pod).letters;
    const std::string whole = scale_.labels ? letters + parse_pod_name(pod.pod).number : letters;
    const std::size_t most = render::characters_in(width, scale_.text_size);
    return whole.size() <= most ? whole : letters.size() <= most ? letters : "";
  }

  [[nodiscard]] std::string parts_in(const std::vector<Part>& parts, const Box& box) const {
    std::size_t cores = 0;
    for (const Part& part : parts) cores += part.cores;
    std::string out;
    std::size_t before = 0;
    const auto x_at = [&](std::size_t core) {
      return box.x + box.width * static_cast<int>(core) / static_cast<int>(cores);
    };
    for (const Part& part : parts) {
      const Box at{x_at(before), box.y, x_at(before + part.cores) - x_at(before), box.height};
      before += part.cores;
      if (part.pod == nullptr) continue;
      if (parts.size() > 1) out += svg::rectangle(at, 0, colour_class(workloads_.of(*part.pod).colour));
      const std::string label = label_of(*part.pod, at.width);
      const int baseline = at.y + at.height / 2 + scale_.text_size * 3 / 8;
      if (!label.empty()) out += svg::text(at.x + at.width / 2, baseline, "tx b", label, svg::Anchor::middle);
    }
    return out;
  }

  [[nodiscard]] std::string device(int index, const Box& box) const {
    const auto& devices = report().host.devices;
    const auto found = std::ranges::find(devices, index, &model::NeuronDevice::index);
    if (found == devices.end()) return missing(index, box);
    const std::vector<Part> parts = parts_of(static_cast<std::size_t>(found - devices.begin()));
    const std::string_view kind = svg::state_class(found->health);
    std::string fill;
    if (!report().pods) {
      fill = " unk";
    } else if (parts.size() == 1 && parts.front().pod != nullptr) {
      fill = ' ' + colour_class(workloads_.of(*parts.front().pod).colour);
    }
    std::string out = group(device_words(*found, parts));
    if (kind.empty()) {
      out += svg::rectangle(box, 4, "dev" + fill) + parts_in(parts, box);
      if (parts.size() > 1) out += svg::rectangle(box, 4, "dev none");
    } else {
      const Box inner{box.x + kHatchBand, box.y + kHatchBand, box.width - 2 * kHatchBand, box.height - 2 * kHatchBand};
      out += svg::rectangle(box, 4, "f" + std::string(kind));
      out += svg::rectangle(inner, 1, fill.empty() ? "panel" : fill.substr(1)) + parts_in(parts, inner);
      out += svg::rectangle(box, 4, "dev none " + std::string(kind)) + mark(found->health, box.right() - 3, box.y + 3);
    }
    return out + group_end();
  }

  [[nodiscard]] std::string missing(int index, const Box& box) const {
    const model::Health gone{model::HealthState::unhealthy, "", "", ""};
    const std::string words = "neuron" + std::to_string(index) + " is missing";
    return group(words) + svg::rectangle(box, 4, "dev none dash bad") +
           mark(gone, box.x + box.width / 2, box.y + box.height / 2) + group_end();
  }

  [[nodiscard]] std::string interface(const model::EfaInterface& efa, const Box& box) const {
    const auto holder = use_.efas.find(efa.name);
    const std::string_view kind = svg::state_class(efa.health);
    std::string classes = "efa";
    std::string words = efa.name.empty() ? "EFA " + model::to_string(efa.bdf) : efa.name;
    if (model::is_assessed(efa.health)) words += ": " + std::string(model::to_string(efa.health.state));
    if (holder != use_.efas.end()) {
      const report::PodUse& pod = (*report().pods)[holder->second];
      classes += ' ' + colour_class(workloads_.of(pod).colour);
      words += ", held by " + pod.pod_namespace + '/' + pod.pod;
    } else if (report().pods) {
      words += ", free";
    }
    std::string out = group(words);
    out += svg::rectangle(box, scale_.efa / 2, kind.empty() ? classes : classes + ' ' + std::string(kind));
    if (!kind.empty()) {
      out += "<path class=\"x " + std::string(kind) + "\" d=\"M" + std::to_string(box.x) + ' ' + std::to_string(box.y) +
             'L' + std::to_string(box.right()) + ' ' + std::to_string(box.bottom()) + "\"/>\n";
    }
    return out + group_end();
  }

  [[nodiscard]] std::string device_words(const model::NeuronDevice& device, const std::vector<Part>& parts) const {
    std::string words = "neuron" + std::to_string(device.index);
    if (model::is_assessed(device.health)) words += ": " + std::string(model::to_string(device.health.state));
    if (!device.health.sentence.empty()) words += ", " + device.health.sentence;
    if (!report().pods) return words + "; holders unknown";
    std::set<std::string> names;
    std::size_t free = 0;
    for (const Part& part : parts) {
      if (part.pod == nullptr) free += part.cores;
      if (part.pod != nullptr) names.insert(part.pod->pod_namespace + '/' + part.pod->pod);
    }
    if (names.empty()) return words + "; free";
    words += "; held by " + render::joined(names, ", ");
    return free > 0 ? words + "; " + counted(free, "core") + " free" : words;
  }

  const Tile& tile_;
  const TileSize& size_;
  const Scale& scale_;
  const Workloads& workloads_;
  bool tooltips_;
  Use use_;
};

}  // namespace

int efas_height(const Tile& tile, int width, const Scale& scale) {
  const EfaGrid grid = efa_grid(tile, width, scale);
  return grid.rows * grid.step;
}

std::string draw_hardware(const Tile& tile, const TileSize& size, const Scale& scale, const Workloads& workloads,
                          MapFormat format) {
  const Drawing drawing(tile, size, scale, workloads, format);
  return drawing.devices() + drawing.efas();
}

}  // namespace neuron::fleet::map
