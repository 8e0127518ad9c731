#include "agent/host/machine_topology.h"

#include <chrono>

#include "agent/base/child_process.h"
#include "agent/base/parse.h"

namespace neuron::host {
namespace {

constexpr std::string_view kVersion = "neuron-topology/1";
constexpr int kMaxCpu = 8191;
constexpr int kMaxNode = 1023;
constexpr std::size_t kMaxFunctions = 4096;

tl::unexpected<Error> corrupt(std::string_view line) {
  return fail(ErrorCode::data_corrupt, "the helper answered \"" + printable(line) + '"');
}

Result<void> parse_line(std::string_view line, MachineTopology& machine) {
  const auto words = split(line, ' ');
  if (words.size() != 3) return corrupt(line);
  if (words[0] == "node") {
    const auto index = parse_int(words[1], 0, kMaxNode);
    auto cpus = words[2] == "-" ? std::vector<int>() : parse_int_list(words[2], kMaxCpu);
    const bool ascends = machine.numa_nodes.empty() || (index && machine.numa_nodes.back().index < *index);
    if (!index || !cpus || !ascends) return corrupt(line);
    machine.numa_nodes.push_back({*index, *std::move(cpus)});
    return {};
  }
  const auto bdf = model::parse_bdf(words[1]);
  auto nodes = parse_int_list(words[2], kMaxNode);
  if (words[0] != "function" || !bdf || !nodes || machine.numa_of.size() >= kMaxFunctions) return corrupt(line);
  machine.numa_of[*bdf] = *std::move(nodes);
  return {};
}

Result<MachineTopology> ask_helper(const FsRoot& root) {
  constexpr std::chrono::seconds kBudget{5};
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
  TRY_ASSIGN(const std::string program, find_helper("neuron-topology"));
  TRY_ASSIGN(const ChildOutcome answer, run_program({program, root.path()}, kBudget, kMaxBytes));
  if (answer.end == ChildOutcome::End::out_of_time) {
    return fail(ErrorCode::deadline_exceeded, "reading " + root.path() + " took longer than 5 s");
  }
  if (answer.end == ChildOutcome::End::cut) return fail(ErrorCode::data_corrupt, "the helper's answer is too long");
  if (answer.end == ChildOutcome::End::exited && answer.status == 0) return parse_topology(answer.output);
  const std::string complaint = complaint_of(answer);
  const std::string how =
      (answer.end == ChildOutcome::End::killed ? "signal " : "exit status ") + std::to_string(answer.status);
  return fail(ErrorCode::internal, !complaint.empty() ? complaint : "reading " + root.path() + " ended with " + how);
}

}  // namespace

std::string format_topology(const MachineTopology& machine) {
  std::string text = std::string(kVersion) + '\n';
  for (const model::NumaNode& node : machine.numa_nodes) {
    text += "node " + std::to_string(node.index) + ' ' + (node.cpus.empty() ? "-" : format_int_list(node.cpus)) + '\n';
  }
  for (const auto& [bdf, nodes] : machine.numa_of) {
    text += "function " + model::to_string(bdf) + ' ' + format_int_list(nodes) + '\n';
  }
  return text + "end\n";
}

Result<MachineTopology> parse_topology(std::string_view text) {
  MachineTopology machine;
  const auto lines = split(trim(text), '\n');
  if (lines.size() < 2 || lines.front() != kVersion || lines.back() != "end") {
    return fail(ErrorCode::data_corrupt, "the helper's answer is truncated or of another version");
  }
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) TRY(parse_line(lines[i], machine));
  return machine;
}

Result<MachineTopology> load_machine_topology(const FsRoot& root) {
  auto machine = ask_helper(root);
  if (!machine) return fail(std::move(machine).error().with_context("hwloc"));
  return machine;
}

}  // namespace neuron::host
