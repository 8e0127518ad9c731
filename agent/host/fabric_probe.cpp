#include "agent/host/fabric_probe.h"

#include <algorithm>
#include <set>

#include "agent/base/child_process.h"
#include "agent/base/parse.h"
#include "agent/host/fabric_probe_library.h"

namespace neuron::host {
namespace {

using preflight::FabricFacts;

constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxInterfaces = 256;
constexpr std::size_t kMaxLogLines = 3;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxMessage = 200;

// The last lines that speak of `provider`, without libfabric's mark of process and time. Other providers warn as well.
std::vector<std::string> last_lines(std::string_view text, const std::string& provider) {
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with("libfabric:")) line.remove_prefix(std::min(line.find("::"), line.size() - 2) + 2);
    if (line.find(provider) == std::string_view::npos) continue;
    lines.push_back(printable(line, kMaxMessage));
    if (lines.size() > kMaxLogLines) lines.erase(lines.begin());
  }
  return lines;
}

void parse_line(std::string_view line, FabricFacts& facts, std::set<std::string>& names, bool& done) {
  const auto space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  if (word == "done") done = true;
  if (word == "version") facts.version = printable(rest, kMaxName);
  if (word == "interface" && !rest.empty() && names.size() < kMaxInterfaces) names.insert(printable(rest, kMaxName));
  if (word == "missing") {
    facts.state = FabricFacts::State::no_library;
    facts.message = printable(rest, kMaxMessage);
  }
  if (word != "error") return;
  const auto end = rest.find(' ');
  facts.error_code = parse_int(rest.substr(0, end), 1, 100000).value_or(0);
  if (end != std::string_view::npos) facts.message = printable(rest.substr(end + 1), kMaxMessage);
}

}  // namespace

std::string nic_of_domain(std::string_view domain) {
  for (const std::string_view suffix : {"-rdm", "-dgrm"}) {
    if (domain.ends_with(suffix)) return std::string(domain.substr(0, domain.size() - suffix.size()));
  }
  return std::string(domain);
}

preflight::FabricFacts parse_fabric_answer(std::string_view text) {
  FabricFacts facts;
  facts.state = FabricFacts::State::answered;
  std::set<std::string> names;
  bool done = false;
  for (const std::string_view line : split(text, '\n')) parse_line(line, facts, names, done);
  facts.interfaces.assign(names.begin(), names.end());
  if (done) return facts;
  facts.state = FabricFacts::State::failed;
  facts.message = "the answer is truncated";
  return facts;
}

preflight::FabricFacts probe_fabric(const FabricRequest& request) {
  const auto outcome =
      run_in_child([&](int output) { return ask_fabric_library(request.libraries, request.provider, output); },
                   request.budget, kMaxBytes);
  FabricFacts facts = parse_fabric_answer(outcome ? outcome->output : "");
  if (!outcome) {
    facts.message = printable(outcome.error().message, kMaxMessage);
    return facts;
  }
  switch (outcome->end) {
    case ChildOutcome::End::exited:
      if (facts.state == FabricFacts::State::failed && outcome->status != 0) {
        facts.message = "the child ended with status " + std::to_string(outcome->status);
      }
      break;
    case ChildOutcome::End::killed:
      facts.state = FabricFacts::State::died;
      facts.signal = outcome->status;
      break;
    case ChildOutcome::End::out_of_time:
      facts.state = FabricFacts::State::timed_out;
      break;
    case ChildOutcome::End::cut:
      facts.state = FabricFacts::State::failed;
      facts.message = "the answer is too long";
      break;
  }
  facts.provider = request.provider;
  facts.budget = request.budget;
  facts.log = last_lines(outcome->errors, request.provider);
  return facts;
}

}  // namespace neuron::host
