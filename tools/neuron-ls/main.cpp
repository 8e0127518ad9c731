#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/host/fs_root.h"
#include "agent/host/root_source.h"
#include "tools/neuron-ls/node_reader.h"
#include "tools/neuron-ls/options.h"
#include "tools/neuron-ls/watch.h"
#include "tools/render/node_report.h"
#include "tools/render/node_tables.h"
#include "tools/render/node_view.h"
#include "tools/render/style.h"

namespace neuron::ls {
namespace {

// The official table lists the neighbours of a complete machine; a list must not name a device that is not there. The
// drawing, which shows missing devices, uses the full lists.
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

// As the official tool does, which shows the driver's lists.
render::NodeReport without_blanked_lists(render::NodeReport report) {
  for (model::NeuronDevice& device : report.host.devices) {
    if (report.blanked_lists.contains(device.index)) device.neighbours.reset();
  }
  return report;
}

// A node whose lists are blank is drawn from the official table.
std::string drawing(const render::NodeReport& report, const render::NodeView& view) {
  const bool blanked = std::ranges::any_of(view.devices, [&](const render::DeviceView& device) {
    return !device.neighbours.empty() && report.blanked_lists.contains(device.host_index);
  });
  return draw_topology(view) +
         (blanked ? "\nThe driver shows no connections; those drawn are from the official table.\n" : "");
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
    if (std::ranges::binary_search(shown, number)) continue;
    return fail(ErrorCode::invalid_argument,
                "there is no device " + std::to_string(number) + " here: the devices are " + format_int_list(shown));
  }
  std::erase_if(view.devices,
                [&](const render::DeviceView& device) { return !std::ranges::binary_search(wanted, device.index); });
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

// The text of a report under these options, complete with line ends; -j has none at its end, as in the official tool.
// `colour` is none unless the output is a terminal. Pure. Errors: invalid_argument when --device names a device that is
// not listed.
Result<std::string> listing(const render::NodeReport& report, const Options& options, render::ColourDepth colour) {
  const render::NodeReport listed = without_absent_neighbours(report);
  render::NodeView view = view_of(is_official(options) ? without_blanked_lists(listed) : listed, options);
  if (!options.devices.empty()) TRY(choose(view, options.devices));
  if (options.json) return device_json(view);
  if (options.format == Format::svg) return render::node_svg(report);  // of the whole machine, as the drawing
  const render::NodeReport chosen = options.devices.empty() ? listed : only_devices(listed, host_indices(view));
  const auto layout = options.watch ? render::JsonLayout::one_line : render::JsonLayout::indented;
  if (options.format == Format::json) return node_report_json(chosen, layout);
  if (options.format == Format::csv) return render::node_report_csv(chosen);
  const std::string table = table_text(chosen, view, options, colour);
  return options.topology ? table + drawing(report, view_of(report, options)) : table;
}

std::string complaint(const std::string& what, const std::string& action) {
  return "neuron-ls: " + what + '\n' + (action.empty() ? "" : "neuron-ls: " + action + '\n');
}

// Advice on a root that cannot be read; "" where the message is enough.
std::string advice_on_root(const Error& error) {
  switch (error.code) {
    case ErrorCode::not_found:
      return "give a directory with a machine's sys, proc and dev, or an archive of one";
    case ErrorCode::data_corrupt:
      return "give a directory or an intact archive: copy it again, or capture it again with neuron-gather";
    case ErrorCode::permission_denied:
      return "run it as a user with read permission";
    default:
      return "";
  }
}

int complain(const std::string& what, const std::string& action) {
  std::fputs(complaint(what, action).c_str(), stderr);
  return EXIT_FAILURE;
}

int print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return EXIT_SUCCESS;
  std::perror("neuron-ls: writing to stdout");
  return EXIT_FAILURE;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

render::ColourDepth colour_of_stdout() {
  if (::isatty(STDOUT_FILENO) == 0) return render::ColourDepth::none;
  render::TerminalFacts facts;
  facts.is_terminal = true;
  facts.no_color = !variable("NO_COLOR").empty();
  facts.term = variable("TERM");
  facts.colorterm = variable("COLORTERM");
  return render::choose_style(facts).colour;
}

Shown read_and_list(NodeReader& reader, const Options& options, render::ColourDepth colour) {
  const Reading reading = reader.read();
  if (reading.absence) return {"", complaint(reading.absence->what, reading.absence->action)};
  auto text = listing(reading.report, options, colour);
  if (!text) return {"", complaint(text.error().message, "see neuron-ls --help")};
  return {*std::move(text), reading.warning.empty() ? "" : "neuron-ls: " + reading.warning + '\n'};
}

int list_once(NodeReader& reader, const Options& options) {
  const Shown shown = read_and_list(reader, options, colour_of_stdout());
  std::fputs(shown.complaint.c_str(), stderr);
  return shown.text.empty() ? EXIT_FAILURE : print(shown.text);
}

int list_again_and_again(NodeReader& reader, const Options& options) {
  const bool document = options.format == Format::json && !options.json;
  const WatchPlan plan{*options.watch, ::isatty(STDOUT_FILENO) != 0, !document};
  const render::ColourDepth colour = colour_of_stdout();
  return watch(plan, [&reader, &options, colour] { return read_and_list(reader, options, colour); });
}

int list(const Options& options) {
  if (options.watch) block_watch_signals();
  const auto source = host::RootSource::open(options.root);
  if (!source) return complain(source.error().message, advice_on_root(source.error()));
  auto root = host::FsRoot::open(source->directory());
  if (!root) return complain(root.error().message, advice_on_root(root.error()));
  NodeReader reader(std::make_shared<const host::FsRoot>(*std::move(root)), options);
  const int code = options.watch ? list_again_and_again(reader, options) : list_once(reader, options);
  if (!reader.stop()) std::_Exit(code);
  return code;
}

int run(int argc, const char* const* argv) {
  const auto request = parse_options(argc, argv);
  if (!request) return complain(request.error().message, "see neuron-ls --help");
  if (const auto* text = std::get_if<std::string>(&*request)) return print(*text);
  return list(std::get<Options>(*request));
}

}  // namespace
}  // namespace neuron::ls

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  return neuron::ls::run(argc, argv);
}
