#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "agent/base/standard_streams.h"
#include "agent/host/fs_root.h"
#include "agent/host/root_source.h"
#include "tools/neuron-ls/listing.h"
#include "tools/neuron-ls/node_reader.h"
#include "tools/neuron-ls/options.h"
#include "tools/neuron-ls/watch.h"
#include "tools/render/style.h"

namespace neuron::ls {
namespace {

std::string complaint(const std::string& what, const std::string& action) {
  return "neuron-ls: " + what + '\n' + (action.empty() ? "" : "neuron-ls: " + action + '\n');
}

// What to do about a root that cannot be read; "" where the message says it all.
std::string advice_on_root(const Error& error) {
  switch (error.code) {
    case ErrorCode::not_found:
      return "name a directory that holds a machine's sys, proc and dev, or an archive of one";
    case ErrorCode::data_corrupt:
      return "name a directory, or a sound archive: copy it again, or capture it again with neuron-gather";
    case ErrorCode::permission_denied:
      return "run it as a user who may read it";
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

Shown look(NodeReader& reader, const Options& options, render::ColourDepth colour) {
  const Reading reading = reader.read();
  if (reading.absence) return {"", complaint(reading.absence->what, reading.absence->action)};
  auto text = listing(reading.report, options, colour);
  if (!text) return {"", complaint(text.error().message, "see neuron-ls --help")};
  return {*std::move(text), reading.warning.empty() ? "" : "neuron-ls: " + reading.warning + '\n'};
}

int list_once(NodeReader& reader, const Options& options) {
  const Shown shown = look(reader, options, colour_of_stdout());
  std::fputs(shown.complaint.c_str(), stderr);
  return shown.text.empty() ? EXIT_FAILURE : print(shown.text);
}

int list_again_and_again(NodeReader& reader, const Options& options) {
  const bool document = options.format == Format::json && !options.json;
  const WatchPlan plan{*options.watch, ::isatty(STDOUT_FILENO) != 0, !document};
  const render::ColourDepth colour = colour_of_stdout();
  return watch(plan, [&reader, &options, colour] { return look(reader, options, colour); });
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
