#include <unistd.h>
#include <chrono>
#include <memory>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/top_live.h"
#include "tools/kubectl-neuron/top_screen.h"
#include "tools/screen/live.h"

namespace neuron::fleet {
namespace {

using std::chrono::milliseconds;

constexpr Wanted kWanted{.agents = true, .metrics = true};
constexpr milliseconds kShortest{1000};

Result<milliseconds> interval_of(const std::string& text) {
  constexpr int kMostSeconds = 3600;
  if (const auto seconds = parse_int(text, 1, kMostSeconds)) return std::chrono::seconds(*seconds);
  const auto duration = parse_duration(text);
  if (duration && *duration >= kShortest && *duration <= std::chrono::seconds(kMostSeconds)) return *duration;
  return fail(ErrorCode::invalid_argument, "--interval `" + printable(text) + "' is not a time from 1s to 60m");
}

TopState state_of(const TopOptions& own) {
  TopState state;
  state.by = parse_top_by(own.by).value_or(TopBy::node);
  state.sort = parse_top_sort(own.sort).value_or(TopSort::name);
  for (const char c : own.filter.substr(0, screen::kMaxFilter)) {
    state.filter += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return state;
}

int print_once(const Options& options, const TopOptions& own) {
  const auto documents = documents_of(options, kWanted);
  if (!documents) return fail_with(documents.error());
  const Top top = make_top(make_fleet(*documents), usages_of(*documents, 0));
  const TopState state = state_of(own);
  if (own.json) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return print(top_json(top, state.sort, state.filter, std::chrono::duration_cast<milliseconds>(now).count()));
  }
  render::Style style = screen::style_of_stdout();
  if (options.no_color) style.colour = render::ColourDepth::none;
  return print(print_top(top, state, style.charset, screen::print_columns()).to_text(style.colour));
}

}  // namespace

void add_top(CLI::App& command, TopOptions& own) {
  command.add_option("--by", own.by, "node, namespace or pod")
      ->check(CLI::IsMember({"node", "namespace", "pod"}))
      ->type_name("WHAT")
      ->take_last();
  command.add_option("--sort", own.sort, "name, utilization, memory, devices or health")
      ->check(CLI::IsMember({"name", "utilization", "memory", "devices", "health"}))
      ->type_name("KEY")
      ->take_last();
  command.add_option("--filter", own.filter, "Only rows with this text")->type_name("TEXT")->take_last();
  command.add_option("--interval", own.interval, "Time between readings (default: 5)")->type_name("TIME")->take_last();
  command.add_flag("--once", own.once, "Print the table and exit");
  command.add_flag("--json", own.json, "Print one JSON object and exit");
}

int run_top(const Options& options, const TopOptions& own) {
  const auto interval = interval_of(own.interval);
  if (!interval) return fail_with(interval.error());
  const bool has_screen = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (own.once || own.json || !has_screen) return print_once(options, own);
  const auto shown = show_top(options, *interval, state_of(own));
  return shown ? kExitOk : fail_with(shown.error());
}

}  // namespace neuron::fleet
