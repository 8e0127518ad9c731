#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#include "agent/core/complete.h"
#include "agent/core/logical_cores.h"
#include "agent/host/fs_root.h"
#include "agent/host/scanner.h"
#include "tools/neuron-ls/absence.h"
#include "tools/neuron-ls/options.h"
#include "tools/neuron-ls/process_commands.h"
#include "tools/render/device_json.h"
#include "tools/render/device_table.h"
#include "tools/render/node_view.h"
#include "tools/render/topology_drawing.h"

namespace neuron::ls {
namespace {

int complain(const std::string& what, const std::string& action) {
  std::fprintf(stderr, "neuron-ls: %s\nneuron-ls: %s\n", what.c_str(), action.c_str());
  return EXIT_FAILURE;
}

int print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return EXIT_SUCCESS;
  std::perror("neuron-ls: writing to stdout");
  return EXIT_FAILURE;
}

render::NodeView view_of(const host::FsRoot& root, const model::HostScan& scan, const Options& options) {
  render::ViewRequest request;
  for (const model::NeuronDevice& device : scan.devices) request.core_ids.push_back(core::core_ids_of(device, scan));
  request.commands = read_process_commands(root, scan);
  if (options.show_all_procs) request.filter = render::ProcessFilter::all;
  if (options.wide) request.command_width = render::kWideCommandWidth;
  return render::make_node_view(scan, request);
}

std::string text_of(const render::NodeView& view, const Options& options) {
  if (options.json) return render::device_json(view);
  if (!options.topology) return header_lines(view) + device_table(view, default_columns(view));
  return header_lines(view) + device_table(view, topology_columns(view)) + draw_topology(view);
}

int list_devices(const Options& options) {
  const auto root = host::FsRoot::open(options.root);
  if (!root) return complain(root.error().message, "name a directory that holds a machine's sys, proc and dev");
  host::Scanner scanner(*root, {.with_topology = false, .with_processes = true});
  const model::HostScan scan = core::complete(scanner.scan());
  if (const auto absence = explain_absence(scan, options.root)) return complain(absence->what, absence->action);
  return print(text_of(view_of(*root, scan, options), options));
}

int run(int argc, const char* const* argv) {
  const auto request = parse_options(argc, argv);
  if (!request) return complain(request.error().message, "see neuron-ls --help");
  if (const auto* text = std::get_if<std::string>(&*request)) return print(*text);
  return list_devices(std::get<Options>(*request));
}

}  // namespace
}  // namespace neuron::ls

int main(int argc, char** argv) {
  return neuron::ls::run(argc, argv);
}
