#include "tools/neuron-ls/listing.h"

#include <algorithm>
#include <set>

#include "agent/base/parse.h"
#include "tools/render/device_json.h"
#include "tools/render/device_table.h"
#include "tools/render/efa_table.h"
#include "tools/render/health_notes.h"
#include "tools/render/node_report_csv.h"
#include "tools/render/node_report_json.h"
#include "tools/render/node_svg.h"
#include "tools/render/node_view.h"
#include "tools/render/topology_drawing.h"

namespace neuron::ls {
namespace {

// The official table names the neighbours of a complete machine; no list may lead to a device that is not there. The
// drawing, which shows the holes, wants them all.
render::NodeReport without_absent_neighbours(render::NodeReport report) {
  std::set<int> present;
  for (const model::NeuronDevice& device : report.host.devices) present.insert(device.index);
  for (model::NeuronDevice& device : report.host.devices) {
    if (!device.neighbours || device.neighbours->origin != model::Origin::assumed) continue;
    std::erase_if(device.neighbours->value, [&](int index) { return !present.contains(index); });
  }
  return report;
}

bool is_official(const Options& options) {
  return options.json || !(options.health || options.efa || options.pods);
}

// As the official tool, which shows the driver's lists.
render::NodeReport without_blanked_lists(render::NodeReport report) {
  for (model::NeuronDevice& device : report.host.devices) {
    if (report.blanked_lists.contains(device.index)) device.neighbours.reset();
  }
  return report;
}

// The drawing of a node whose lists are blank is of the table.
std::string drawing(const render::NodeReport& report, const render::NodeView& view) {
  const bool blanked = std::any_of(view.devices.begin(), view.devices.end(), [&](const render::DeviceView& device) {
    return !device.neighbours.empty() && report.blanked_lists.contains(device.host_index);
  });
  return draw_topology(view) +
         (blanked ? "\nThe driver shows no connections; those drawn are of the official table.\n" : "");
}

render::NodeView view_of(const render::NodeReport& report, const Options& options) {
  render::ViewRequest request;
  request.core_ids = report.core_ids;
  request.switched = report.switched;
  request.mark_assumed_neighbours = !is_official(options);
  request.commands = report.commands;
  if (options.show_all_procs) request.filter = render::ProcessFilter::all;
  if (options.wide) request.command_width = render::kWideCommandWidth;
  if (options.health) request.health = render::HealthShown::yes;
  for (std::size_t i = 0; options.efa && i < report.host.devices.size(); ++i) {
    request.efas.push_back(render::near_efa_names(report, i));
  }
  for (std::size_t i = 0; report.pods && i < report.host.devices.size(); ++i) {
    request.pods.push_back(*render::pods_on_device(report, report.host.devices[i].index));
  }
  return render::make_node_view(report.host, request);
}

// Leaves only the devices of --device in `view`. Errors: invalid_argument for a number that it does not have.
Result<void> choose(render::NodeView& view, const std::vector<int>& wanted) {
  std::vector<int> shown;
  for (const render::DeviceView& device : view.devices) shown.push_back(device.index);
  for (const int number : wanted) {
    if (std::binary_search(shown.begin(), shown.end(), number)) continue;
    return fail(ErrorCode::invalid_argument,
                "there is no device " + std::to_string(number) + " here: the devices are " + format_int_list(shown));
  }
  std::erase_if(view.devices, [&](const render::DeviceView& device) {
    return !std::binary_search(wanted.begin(), wanted.end(), device.index);
  });
  return {};
}

std::set<int> host_indices(const render::NodeView& view) {
  std::set<int> indices;
  for (const render::DeviceView& device : view.devices) indices.insert(device.host_index);
  return indices;
}

std::string table_text(const render::NodeReport& report, const render::NodeView& view, const Options& options,
                       render::ColourDepth colour) {
  std::vector<render::Column> columns = options.topology ? topology_columns(view) : default_columns(view);
  if (options.efa) columns.push_back(render::Column::nearest_efa);
  if (options.health) columns.push_back(render::Column::health);
  if (options.pods) columns.push_back(render::Column::pod);
  std::string text = header_lines(view);
  if (!view.devices.empty()) text += device_table(view, columns, colour);
  if (options.efa) text += '\n' + render::efa_table(report, colour);
  if (options.pods && report.pods) text += '\n' + render::pod_table(report);
  if (options.health) text += '\n' + render::health_notes(report, colour);
  return text;
}

}  // namespace

Result<std::string> listing(const render::NodeReport& report, const Options& options, render::ColourDepth colour) {
  const render::NodeReport listed = without_absent_neighbours(report);
  render::NodeView view = view_of(is_official(options) ? without_blanked_lists(listed) : listed, options);
  if (!options.devices.empty()) TRY(choose(view, options.devices));
  if (options.json) return device_json(view);
  if (options.format == Format::svg) return node_svg(report);  // of the whole machine, as the drawing
  const render::NodeReport chosen = options.devices.empty() ? listed : only_devices(listed, host_indices(view));
  const auto layout = options.watch ? render::JsonLayout::one_line : render::JsonLayout::indented;
  if (options.format == Format::json) return node_report_json(chosen, layout);
  if (options.format == Format::csv) return node_report_csv(chosen);
  const std::string table = table_text(chosen, view, options, colour);
  return options.topology ? table + drawing(report, view_of(report, options)) : table;
}

}  // namespace neuron::ls
