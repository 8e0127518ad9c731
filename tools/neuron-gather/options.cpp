#include "tools/neuron-gather/options.h"

#include <CLI/CLI.hpp>

#include "neuron_version.h"

namespace neuron::gather {
namespace {

constexpr const char* kAbout =
    "Captures the files of this machine that the other programs read, for use\nelsewhere: neuron-ls --root "
    "CAPTURE.tar.gz";

constexpr const char* kFooter =
    "Changes nothing. Leaves out environments and, unless asked for, command\n"
    "lines of processes. MANIFEST.json in the capture names what could not be\n"
    "read. Exit status: 0 success; 1 nothing written; 2 wrong usage.";

}  // namespace

Result<Request> parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app(kAbout, "neuron-gather");
  app.footer(kFooter);
  app.get_formatter()->column_width(26);
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("neuron-gather ") + kVersion, "Print the version");
  const auto* output =
      app.add_option("-o,--output", options.output,
                     "A new .tar.gz, a new directory, or -\nfor standard output (default\nneuron-TYPE-TIME.tar.gz)")
          ->envname("NEURON_GATHER_OUTPUT")
          ->type_name("PATH");
  app.add_option("--root", options.root, "Directory with the machine's sys, proc\nand dev, or an archive")
      ->envname("NEURON_GATHER_ROOT")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--with-commands", options.with_commands,
               "Also capture command lines and\nNEURON_PROCESS_TAG of processes that\nuse a Neuron device")
      ->envname("NEURON_GATHER_WITH_COMMANDS");
  app.add_flag("--anonymise", options.anonymise,
               "Replace serial numbers, instance id\nand values with a MAC address, equal\nones by equal ones")
      ->envname("NEURON_GATHER_ANONYMISE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Request(app.help());
  } catch (const CLI::CallForVersion&) {
    return Request(app.version() + '\n');
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::invalid_argument, error.what());
  }
  if (output->count() > 0 && options.output.empty()) {
    return fail(ErrorCode::invalid_argument, "--output is empty; give an archive, a directory, or - for stdout");
  }
  return Request(options);
}

}  // namespace neuron::gather
