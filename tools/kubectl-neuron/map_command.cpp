#include <cerrno>
#include <cstdio>
#include <memory>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/counts.h"
#include "tools/kubectl-neuron/map.h"

namespace neuron::fleet {
namespace {

// Replaces what the file holds.
Result<void> write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return fail(error_from_errno(errno, printable(path)));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) == 0 && written) return {};
  return fail(error_from_errno(written ? errno : error, printable(path)));
}

}  // namespace

void add_map(CLI::App& command, MapOptions& own) {
  command.add_option("-o,--output", own.format, "svg, or html with a tooltip on each device")
      ->check(CLI::IsMember({"svg", "html"}))
      ->type_name("FORMAT")
      ->take_last();
  command.add_option("FILE", own.file, "The file to write, or - for standard output")->required();
}

int run_map(const Options& options, const MapOptions& own) {
  auto fleet = read_fleet(options, {.agents = true});
  if (!fleet) return fail_with(fleet.error());
  std::erase_if(fleet->nodes, [](const Node& node) { return !has_hardware(node); });
  const bool html = own.format.empty() ? own.file.ends_with(".html") : own.format == "html";
  const std::string picture = draw_map(*fleet, html ? MapFormat::html : MapFormat::svg);
  if (own.file == "-") return print(picture);
  const auto written = write_file(own.file, picture);
  return written ? kExitOk : fail_with(written.error());
}

}  // namespace neuron::fleet
