#include "tools/neuron-top/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "agent/base/parse.h"
#include "neuron_version.h"

namespace neuron::top {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortest{200};
constexpr milliseconds kLongest = std::chrono::hours(1);
constexpr int kMostPictures = 1'000'000'000;

constexpr const char* kFooter =
    "Keys: q quit, ? help. Unknown values are shown as n/a, with the reason.\nWithout a terminal it prints once. Exit "
    "status: 0 success; 1 wrong usage, no\nsuch directory, or no answer from the machine.";

// Texts that become other types once everything is parsed.
struct Texts {
  std::string interval = "1";
};

void add_options(CLI::App& app, Options& options, Texts& texts) {
  app.add_flag("--once", options.once, "Print the screen as text and exit")->envname("NEURON_TOP_ONCE");
  app.add_flag("--json", options.json, "Print one JSON object per interval")->envname("NEURON_TOP_JSON");
  app.add_option("--interval", texts.interval, "Time between samples, e.g. 2 or 500ms")
      ->envname("NEURON_TOP_INTERVAL")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--count", options.count, "Exit after this many prints or objects")
      ->envname("NEURON_TOP_COUNT")
      ->type_name("N")
      ->check(CLI::Range(1, kMostPictures));
  app.add_flag("--no-wait", options.no_wait, "Print from one sample; rates are n/a")->envname("NEURON_TOP_NO_WAIT");
  app.add_flag("--pods", options.with_pods, "Query the kubelet for the pods of devices")->envname("NEURON_TOP_PODS");
  app.add_option("--kubelet-dir", options.kubelet_dir, "The kubelet's directory, for --pods")
      ->envname("NEURON_TOP_KUBELET_DIR")
      ->type_name("DIR");
  app.add_option("--dra-driver-name", options.dra_driver_name, "Driver of the claims that --pods shows")
      ->envname("NEURON_TOP_DRA_DRIVER_NAME")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--root", options.root, "Machine to read: a directory or an archive")
      ->envname("NEURON_TOP_ROOT")
      ->type_name("DIR");
}

// Seconds with or without a fraction, in any locale alike.
std::optional<milliseconds> parse_seconds(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0 && seconds <= 86400)) {
    return std::nullopt;
  }
  return milliseconds(std::lround(seconds * 1000));
}

}  // namespace

Result<milliseconds> parse_interval(std::string_view text) {
  auto interval = parse_seconds(trim(text));
  if (!interval) {
    const auto duration = parse_duration(trim(text));
    if (duration) interval = *duration;
  }
  if (!interval && trim(text).ends_with('h')) {
    const std::string_view hours = trim(text).substr(0, trim(text).size() - 1);
    if (const auto number = parse_int(hours, 0, 24)) interval = std::chrono::hours(*number);
  }
  if (!interval) {
    return fail(ErrorCode::invalid_argument, "--interval `" + printable(text) + "' is not a time such as 2 or 500ms");
  }
  if (*interval != milliseconds(0) && (*interval < kShortest || *interval > kLongest)) {
    return fail(ErrorCode::invalid_argument, "--interval must lie between 200ms and 1 hour");
  }
  return *interval;
}

Result<Request> parse_options(int argc, const char* const* argv) {
  Options options;
  Texts texts;
  CLI::App app("Shows live activity of the Neuron devices and EFA interfaces of this machine.", "neuron-top");
  app.footer(kFooter);
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("neuron-top ") + kVersion, "Print the version");
  add_options(app, options, texts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Request(app.help());
  } catch (const CLI::CallForVersion&) {
    return Request(app.version() + '\n');
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::invalid_argument, printable(error.what()));
  }
  TRY_ASSIGN(options.interval, parse_interval(texts.interval));
  if (options.interval == milliseconds(0)) {
    options.no_wait = true;
    options.interval = milliseconds(1000);
  }
  return Request(options);
}

}  // namespace neuron::top
