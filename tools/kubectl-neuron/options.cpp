#include "tools/kubectl-neuron/options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/counts.h"
#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/fit.h"
#include "tools/render/style.h"

namespace neuron::fleet {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// One line on standard error that is overwritten; nothing where that is no terminal.
Progress progress_line() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [](std::size_t done, std::size_t expected) {
    const bool has_ended = done == expected;
    std::fprintf(stderr, has_ended ? "\r\x1b[K" : "\rreading %zu of %zu\x1b[K", done, expected);
    std::fflush(stderr);
  };
}

}  // namespace

std::string needs_name(const std::string& file) {
  return file.empty() ? "needs a file's name" : "";
}

std::shared_ptr<Waits> said_waits() {
  return std::make_shared<Waits>([](const std::string& sentence) {
    const char* begin = ::isatty(STDERR_FILENO) == 0 ? "" : "\r\x1b[K";  // over the progress line
    std::fprintf(stderr, "%skubectl-neuron: %s\n", begin, printable(sentence, 400).c_str());
    std::fflush(stderr);
  });
}

Result<Documents> documents_of(const Options& options, const Wanted& wanted) {
  if (!options.from.empty()) return read_dump(options.from, wanted.reports);
  TRY_ASSIGN(const auto cluster, open_kubectl(options.cluster, said_waits()));
  return read_documents(*cluster, options.cluster.kube_namespace, wanted, progress_line());
}

Result<Fleet> read_fleet(const Options& options, Wanted wanted) {
  wanted.reports = true;
  TRY_ASSIGN(Documents documents, documents_of(options, wanted));
  return make_fleet(std::move(documents));
}

void add_output(CLI::App& command, std::string& output) {
  command.add_option("-o,--output", output, "table, wide, json or csv")
      ->check(CLI::IsMember({"table", "wide", "json", "csv"}))
      ->type_name("FORMAT")
      ->take_last();
}

Output output_of(const std::string& text) {
  if (text == "wide") return Output::wide;
  if (text == "json") return Output::json;
  return text == "csv" ? Output::csv : Output::table;
}

namespace {

// Names of nodes with hardware that are close to the one that was typed.
std::string similar_nodes(const Fleet& fleet, const std::string& name) {
  constexpr std::size_t kMost = 3, kLongest = 253;
  std::vector<std::pair<std::size_t, std::string>> near;
  const std::string wanted = name.substr(0, kLongest);
  for (const Node& node : fleet.nodes) {
    if (!has_hardware(node) || node.name.size() > kLongest) continue;
    const std::size_t distance = edit_distance(wanted, node.name);
    const bool is_near = distance <= std::max<std::size_t>(2, wanted.size() / 3) || node.name.starts_with(wanted);
    if (is_near) near.emplace_back(distance, node.name);
  }
  std::ranges::sort(near);
  std::vector<std::string> names;
  for (const auto& [distance, node] : near) names.push_back(node);
  names.resize(std::min(names.size(), kMost));
  return names.empty() ? "" : "; similar: " + some_of(names);
}

}  // namespace

Result<void> keep_nodes(Fleet& fleet, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::set<std::string> kept;
  for (const std::string& typed : names) {
    const std::string name = typed.starts_with("node/") ? typed.substr(5) : typed;
    if (name.empty()) return fail(ErrorCode::invalid_argument, "the name of a node is empty");
    const Node* node = find_node(fleet, name);
    if (node == nullptr) {
      return fail(ErrorCode::not_found,
                  "no node " + printable(name, 260) + " could be read" + similar_nodes(fleet, name));
    }
    if (!has_hardware(*node)) {
      return fail(ErrorCode::failed_precondition,
                  "node " + printable(name, 260) + " has no Neuron devices and no EFA interfaces");
    }
    kept.insert(name);
  }
  std::erase_if(fleet.nodes, [&](const Node& node) { return !kept.contains(node.name); });
  fleet.nodes_unread.clear();  // of others
  return {};
}

std::string namespace_of(const Options& options, const Fleet& fleet) {
  if (!options.cluster.kube_namespace.empty()) return options.cluster.kube_namespace;
  return fleet.default_namespace.empty() ? "default" : fleet.default_namespace;
}

int fail_with(const Error& error) {
  std::fprintf(stderr, "kubectl-neuron: %s\n", error.message.c_str());
  return kExitUnknown;
}

void print_unknown(const Fleet& fleet) {
  for (const std::string& sentence : fleet.unknown) {
    std::fprintf(stderr, "kubectl-neuron: %s\n", printable(sentence, 600).c_str());
  }
}

int print(const std::string& text, int code) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return code;
  if (errno == EPIPE) return code;  // `| head`
  std::perror("kubectl-neuron: standard output");
  return kExitUnknown;
}

bool has_colour(const Options& options) {
  if (options.no_color || ::isatty(STDOUT_FILENO) == 0) return false;
  render::TerminalFacts facts;
  facts.is_terminal = true;
  facts.no_color = !variable("NO_COLOR").empty();
  facts.term = variable("TERM");
  facts.colorterm = variable("COLORTERM");
  return render::choose_style(facts).colour != render::ColourDepth::none;
}

}  // namespace neuron::fleet
