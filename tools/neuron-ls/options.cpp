#include "tools/neuron-ls/options.h"

#include <CLI/CLI.hpp>

#include "agent/base/parse.h"
#include "neuron_version.h"

namespace neuron::ls {
namespace {

constexpr const char* kFooter =
    "Reads sysfs and the Neuron driver's answers; no agent is needed.\n"
    "Unknown values are shown as NA. Exit status: 0 success; 1 no device, no\n"
    "driver or wrong usage, with the reason on stderr.";

std::string unknown_argument(std::string_view argument) {
  if (!argument.starts_with('-')) return "unexpected argument `" + printable(argument) + "'";
  const auto name = argument.find_first_not_of('-');
  return "unknown flag `" + printable(name == std::string_view::npos ? argument : argument.substr(name)) + "'";
}

}  // namespace

Result<Request> parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Lists the Neuron devices of this machine and the processes that use them.", "neuron-ls");
  app.footer(kFooter);
  app.allow_extras();
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("neuron-ls ") + kVersion, "Print the version");
  app.add_flag("-w,--wide", options.wide, "Show 80 characters of each command, not 40");
  app.add_flag("-a,--show-all-procs", options.show_all_procs, "Show processes without a Neuron runtime too");
  app.add_flag("-t,--topology", options.topology, "Draw how the devices are connected");
  app.add_flag("-j,--json-output", options.json, "Print JSON");
  app.add_option("--root", options.root, "Directory with the machine's sys, proc and dev")
      ->envname("NEURON_LS_ROOT")
      ->type_name("DIR")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Request(app.help());
  } catch (const CLI::CallForVersion&) {
    return Request(app.version() + '\n');
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::invalid_argument, error.what());
  }
  if (const auto extras = app.remaining(); !extras.empty()) {
    return fail(ErrorCode::invalid_argument, unknown_argument(extras.front()));
  }
  return Request(options);
}

}  // namespace neuron::ls
