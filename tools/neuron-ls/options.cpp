#include "tools/neuron-ls/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "agent/base/parse.h"
#include "neuron_version.h"

namespace neuron::ls {
namespace {

constexpr const char* kFooter =
    "Without additional options the output is that of the official tool. Reads\nsysfs and driver answers; no agent is "
    "needed. Unknown values are NA. Additional\noptions may also be set as NEURON_LS_<OPTION>, e.g. "
    "NEURON_LS_ROOT.\nExit status: 0 success; 1 no device, no driver, no permission or wrong usage,\nwith the reason "
    "on stderr.";
constexpr int kMaxDeviceNumber = 1023;
constexpr const char* kDefaultInterval = "2";

// Texts as they were given, to be checked after parsing.
struct Words {
  std::string format = "table";
  std::vector<std::string> devices;
  std::vector<std::string> watch;  // one word at most; empty also for a bare --watch
};

std::string unknown_argument(std::string_view argument) {
  if (!argument.starts_with('-')) return "unexpected argument `" + printable(argument) + "'";
  const auto name = argument.find_first_not_of('-');
  return "unknown flag `" + printable(name == std::string_view::npos ? argument : argument.substr(name)) + "'";
}

void declare_official(CLI::App& app, Options& options) {
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("neuron-ls ") + kVersion, "Print the version");
  app.add_flag("-w,--wide", options.wide, "Show 80 characters of each command, not 40");
  app.add_flag("-a,--show-all-procs", options.show_all_procs, "Show processes without a Neuron runtime too");
  app.add_flag("-t,--topology", options.topology, "Draw the connections of the devices");
  app.add_flag("-j,--json-output", options.json, "Print JSON as the official tool does");
}

// Returns the --watch option, which may come without a value.
CLI::Option* declare_additional(CLI::App& app, Options& options, Words& words) {
  app.add_option("--output-format", words.format,
                 "table, csv, json (all known facts), or svg (a\ndiagram of the node); see neuron-ls(1)")
      ->envname("NEURON_LS_OUTPUT_FORMAT")
      ->take_last()
      ->type_name("FORMAT");
  app.add_flag("--health", options.health, "Add health, with faults below the table")->envname("NEURON_LS_HEALTH");
  app.add_flag("--efa", options.efa, "Add the nearest EFA, and a table of interfaces")->envname("NEURON_LS_EFA");
  app.add_flag("--pods", options.pods, "Add the pods that hold devices (queries kubelet)")->envname("NEURON_LS_PODS");
  app.add_option("--device", words.devices, "Only these devices, e.g. 3 or 0-3,8; repeatable")
      ->envname("NEURON_LS_DEVICE")
      ->type_name("LIST")
      ->allow_extra_args(false);
  CLI::Option* watch = app.add_option("--watch", words.watch, "Repeat at this interval in seconds (default 2)")
                           ->envname("NEURON_LS_WATCH")
                           ->type_name("[SECONDS]")
                           ->expected(0, 1);
  app.add_option("--kubelet-dir", options.kubelet_dir, "The kubelet's directory, for --pods")
      ->envname("NEURON_LS_KUBELET_DIR")
      ->take_last()
      ->type_name("DIR");
  app.add_option("--dra-driver-name", options.dra_driver_name, "Driver of the claims that --pods shows")
      ->envname("NEURON_LS_DRA_DRIVER_NAME")
      ->take_last()
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--root", options.root, "Machine to read: /, or a capture (or its tar)")
      ->envname("NEURON_LS_ROOT")
      ->take_last()
      ->type_name("DIR");
  return watch;
}

bool is_given(const std::string& name, int argc, const char* const* argv) {
  return std::any_of(argv, argv + argc, [&](std::string_view word) {
    return word == name || (word.starts_with(name) && word.substr(name.size()).starts_with('='));
  });
}

// Where the flag that `message` names was set in the environment (as in a pod), names the variable instead.
std::string name_variable(std::string message, const CLI::App& app, int argc, const char* const* argv) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string& variable = option->get_envname();
    const std::string name = option->get_name();
    const auto at = message.find(name);
    if (variable.empty() || at == std::string::npos || std::getenv(variable.c_str()) == nullptr) continue;
    const auto after = at + name.size();
    const bool whole =
        after == message.size() || std::string_view(" :=").find(message[after]) != std::string_view::npos;
    if (whole && !is_given(name, argc, argv)) return message.replace(at, name.size(), variable);
  }
  return message;
}

Result<Format> parse_format(const std::string& word) {
  if (word == "table") return Format::table;
  if (word == "json") return Format::json;
  if (word == "csv") return Format::csv;
  if (word == "svg") return Format::svg;
  return fail(ErrorCode::invalid_argument, "--output-format is `" + printable(word) + "': table, json, csv or svg");
}

Result<std::vector<int>> parse_devices(const std::vector<std::string>& words) {
  std::vector<int> devices;
  for (const std::string& word : words) {
    const auto list = parse_int_list(word, kMaxDeviceNumber);
    if (!list || list->empty()) {
      return fail(ErrorCode::invalid_argument,
                  "--device is `" + printable(word) + "': a number or a list such as 0-3,8");
    }
    devices.insert(devices.end(), list->begin(), list->end());
  }
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

// Seconds with up to three decimals ("0.5", "2"), or with a unit ("500ms", "1m").
Result<std::chrono::milliseconds> parse_interval(const std::string& word) {
  constexpr std::chrono::milliseconds kShortest(100);
  std::string text = word;
  const std::size_t point = text.find('.');
  if (point != std::string::npos && text.size() - point > 1 && text.size() - point <= 4) {
    text.append(4 - (text.size() - point), '0').erase(point, 1);
    text += "ms";
  } else if (parse_u64(text)) {
    text += 's';
  }
  const auto interval = parse_duration(text);
  if (interval && *interval >= kShortest) return *interval;
  return fail(ErrorCode::invalid_argument,
              "--watch is `" + printable(word) + "': seconds from 0.1 to 86400, e.g. 2 or 0.5");
}

Result<Request> check(Options options, const Words& words, bool watches) {
  TRY_ASSIGN(options.format, parse_format(words.format));
  TRY_ASSIGN(options.devices, parse_devices(words.devices));
  if (watches) {
    const bool bare = words.watch.empty() || words.watch.front().empty();
    TRY_ASSIGN(options.watch, parse_interval(bare ? kDefaultInterval : words.watch.front()));
    if (options.format == Format::svg && !options.json) {
      return fail(ErrorCode::invalid_argument, "--watch cannot be combined with --output-format svg");
    }
  }
  return Request(std::move(options));
}

}  // namespace

Result<Request> parse_options(int argc, const char* const* argv) {
  Options options;
  Words words;
  CLI::App app("Lists the Neuron devices of this machine and the processes that use them.", "neuron-ls");
  app.footer(kFooter);
  app.allow_extras();
  declare_official(app, options);
  const CLI::Option* watch = declare_additional(app, options, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Request(app.help());
  } catch (const CLI::CallForVersion&) {
    return Request(app.version() + '\n');
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::invalid_argument, name_variable(error.what(), app, argc, argv));
  }
  if (const auto extras = app.remaining(); !extras.empty()) {
    return fail(ErrorCode::invalid_argument, unknown_argument(extras.front()));
  }
  auto request = check(std::move(options), words, watch->count() > 0);
  if (!request) request.error().message = name_variable(request.error().message, app, argc, argv);
  return request;
}

}  // namespace neuron::ls
