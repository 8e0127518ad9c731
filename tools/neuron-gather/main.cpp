#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <variant>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/host/fs_root.h"
#include "agent/host/root_source.h"
#include "neuron_version.h"
#include "tools/neuron-gather/collector.h"
#include "tools/neuron-gather/output.h"
#include "tools/neuron-gather/reading_watch.h"

namespace neuron::gather {
namespace {

// Exit codes, as in neuron-gather(1); 128 and a signal beside them.
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

constexpr const char* kAbout =
    "Captures the files of this machine that the other programs read, for use\nelsewhere: neuron-ls --root "
    "CAPTURE.tar.gz";

constexpr const char* kFooter =
    "Changes nothing. Leaves out environments and, unless asked for, command\n"
    "lines of processes. MANIFEST.json in the capture names what could not be\n"
    "read. Exit status: 0 success; 1 nothing written; 2 wrong usage.";

// Passive data.
struct Options {
  std::string root = "/";      // --root, else environment NEURON_GATHER_ROOT: a directory or an archive
  std::string output;          // -o, --output, else environment NEURON_GATHER_OUTPUT; "" = a name made of type and time
  bool with_commands = false;  // --with-commands, environment NEURON_GATHER_WITH_COMMANDS
  bool anonymise = false;      // --anonymise, environment NEURON_GATHER_ANONYMISE
};

// Either options or, for --help and --version, the text to print on stdout before leaving with success.
using Request = std::variant<Options, std::string>;

// Errors: invalid_argument.
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

int complain(const Error& error, int code) {
  std::fprintf(stderr, "neuron-gather: %s\n", error.message.c_str());
  return code;
}

// Counts the paths read, in one line of a terminal; prints nothing elsewhere.
class Progress {
 public:
  void step() {
    constexpr std::size_t kEvery = 256;
    if (terminal_ && ++count_ % kEvery == 0) std::fprintf(stderr, "\rneuron-gather: %zu paths", count_);
  }
  void end() const {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::size_t count_ = 0;
};

// "neuron-trn2.48xlarge-20261121T064000Z.tar.gz"
std::string default_name(const Capture& capture, std::chrono::system_clock::time_point now) {
  std::string time = utc_text(now);
  time.erase(std::remove_if(time.begin(), time.end(), [](char c) { return c == '-' || c == ':'; }), time.end());
  std::string type = captured_text(capture, kProductName);
  std::replace_if(
      type.begin(), type.end(), [](char c) { return c == '/' || c == ' ' || c == '\\'; }, '_');
  return "neuron-" + (type.empty() ? "node" : type) + '-' + time + ".tar.gz";
}

void report(const Capture& capture, const std::string& output) {
  constexpr std::size_t kShown = 10;
  constexpr std::size_t kShownBytes = 4096;
  const auto& unreadable = capture.unreadable();
  for (std::size_t i = 0; i < std::min(kShown, unreadable.size()); ++i) {
    std::fprintf(stderr, "neuron-gather: not read: %s: %s\n", printable(unreadable[i].path, kShownBytes).c_str(),
                 printable(unreadable[i].reason, kShownBytes).c_str());
  }
  if (unreadable.size() > kShown) {
    std::fprintf(stderr, "neuron-gather: not read: %zu more, see MANIFEST.json\n", unreadable.size() - kShown);
  }
  if (capture.full()) std::fputs("neuron-gather: the machine has more than a capture may hold\n", stderr);
  const std::string type = captured_text(capture, kProductName);
  const bool to_stdout = output == "-";
  std::fprintf(to_stdout ? stderr : stdout, "captured %zu files of %s %s\n", capture.file_count(),
               type.empty() ? "a machine of unknown type" : type.c_str(),
               to_stdout ? "to standard output" : ("in " + output).c_str());
}

int gather_into(const host::FsRoot& root, const Options& options, ReadingWatch& watch) {
  GatherRequest request;
  request.commands = options.with_commands ? Commands::include : Commands::leave_out;
  request.identity = options.anonymise ? Identity::anonymise : Identity::keep;
  request.now = std::chrono::system_clock::now();
  Progress progress;
  const Capture capture = gather(root, request, [&](const std::string& path) {
    progress.step();
    return watch.permit(path);
  });
  watch.reading_done();
  progress.end();
  const std::string output = options.output.empty() ? default_name(capture, request.now) : options.output;
  const auto begin = [&](const Unfinished& unfinished) { return watch.begin_output(unfinished); };
  if (const auto written = write_output(capture, output, begin); !written) {
    return complain(written.error(), kExitFailed);
  }
  report(capture, output);
  return kExitOk;
}

int gather_machine(const Options& options) {
  constexpr std::chrono::seconds kReadBudget{10};
  const auto source = host::RootSource::open(options.root);
  if (!source) return complain(source.error(), kExitFailed);
  const auto root = host::FsRoot::open(source->directory());
  if (!root) return complain(root.error(), kExitFailed);
  const int code = run_watched([&](ReadingWatch& watch) { return gather_into(*root, options, watch); }, kReadBudget);
  return code < 0 ? kExitFailed : code;
}

int run(int argc, const char* const* argv) {
  // A failed write is an error, not the end of the process.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  const auto request = parse_options(argc, argv);
  if (!request) return complain(request.error(), kExitUsage);
  if (const auto* text = std::get_if<std::string>(&*request)) {
    const bool printed = std::fputs(text->c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    return printed ? kExitOk : complain(error_from_errno(errno, "standard output"), kExitFailed);
  }
  return gather_machine(std::get<Options>(*request));
}

}  // namespace
}  // namespace neuron::gather

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  return neuron::gather::run(argc, argv);
}
