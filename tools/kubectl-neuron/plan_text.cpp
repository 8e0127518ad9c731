#include "tools/kubectl-neuron/plan.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "agent/base/child_process.h"
#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/documents.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

constexpr std::size_t kMostNodes = 20;
constexpr std::size_t kMostGroups = 8;

std::string not_known(const Plan& plan) {
  return plan.was_cut ? "not tried: the time limit was reached" : "not known";
}

std::string number(const Plan& plan, const Count& count) {
  if (!count.pods) return not_known(plan);
  return (count.least ? "at least " : "") + std::to_string(*count.pods);
}

// "4 of 5 pods", "at least 4 of 5 pods"; asked: not known of a DaemonSet whose nodes are not all known.
std::string number_of(const Plan& plan, const Count& count, const std::optional<int>& asked) {
  return number(plan, count) + (asked ? " of " + counted(*asked, "pod") : count == 1 ? " pod" : " pods");
}

void add_group(const Plan& plan, const GroupPlan& group, std::string& text) {
  text += "\n" + printable(group.pod, 400) + ": ";
  if (group.placed.pods) {
    text += number_of(plan, group.placed, group.asked) + (group.placed == 1 ? " fits" : " fit") + " now";
  } else {
    text += "it is not known how many " + (group.asked ? "of " + counted(*group.asked, "pod") : "pods") + " fit now" +
            (plan.was_cut ? ": the time limit was reached" : "");
  }
  if (group.has_hardware) text += "; on the same nodes without other pods " + number(plan, group.empty_fleet);
  text += "\n";
  for (std::size_t i = 0; i < group.nodes.size() && i < kMostNodes; ++i) {
    text += "  " + printable(group.nodes[i].node) + ": " + counted(group.nodes[i].pods, "pod") + "\n";
  }
  if (group.nodes.size() > kMostNodes) {
    text += "  and " + counted(group.nodes.size() - kMostNodes, "more node") + " (all with -o json)\n";
  }
  if (group.obstacles.empty()) return;
  text += "  what stops the next one\n";
  for (std::size_t i = 0; i < group.obstacles.size() && i < kMostGroups; ++i) {
    text += "    " + some_of(group.obstacles[i].nodes, 3) + "\n";
    for (const Obstacle& one : group.obstacles[i].obstacles) text += "        " + words_of(one) + "\n";
  }
}

// Types with the same number on one line, most first, those that were not tried last.
void add_types(const Plan& plan, std::string& text) {
  if (plan.types.empty()) return;
  std::vector<TypeCount> sorted = plan.types;
  std::erase_if(sorted, [](const TypeCount& one) { return one.pods == 0; });
  const auto key = [](const TypeCount& one) { return std::pair(one.pods.pods, one.pods.least); };
  std::ranges::stable_sort(sorted, std::greater<>(), key);
  std::vector<std::string> aside = {"labels"};
  aside.insert(aside.end(), plan.aside.begin(), plan.aside.end());
  text += "\nan empty node of these types takes (its " + some_of(aside, 8) + " aside)\n";
  for (std::size_t i = 0; i < sorted.size();) {
    std::vector<std::string> names;
    const TypeCount first = sorted[i];
    for (; i < sorted.size() && key(sorted[i]) == key(first); ++i) names.push_back(sorted[i].type);
    text += "  " + number(plan, first.pods) + ": " + some_of(names, 8) + "\n";
  }
  if (sorted.empty()) text += "  none: " + plan.types.back().why + "\n";
}

void add_stranded(const Plan& plan, std::string& text) {
  const auto& all = plan.stranded;
  if (plan.more_of.empty() || (all && all->empty())) return;
  text += "\nfree, and of no use to the next pod\n";
  if (!all) text += "  " + not_known(plan) + "\n";
  if (!all) return;
  for (const Stranded& one : *all) {
    text += "  " + amount_text(one.free) + " " + printable(one.unit) + " on " + some_of(one.nodes, 4) + ": " + one.why +
            "\n";
  }
}

std::string first_line(const Plan& plan) {
  const std::string answer = plan.answer == Answer::yes  ? "fits"
                             : plan.answer == Answer::no ? "does not fit"
                                                         : "cannot tell";
  if (!plan.placed.pods && plan.answer == Answer::no) return answer + "; it is not known how many pods do";
  if (!plan.placed.pods) return answer + ": " + (plan.no_nodes.empty() ? not_known(plan) : plan.no_nodes);
  const std::string text = answer + ": " + number_of(plan, plan.placed, plan.asked);
  if (plan.more_of.empty() || plan.more == 0) return text;
  const std::string of = printable(plan.more_of, 400);
  if (!plan.more.pods) return text + "; more of " + of + ": " + not_known(plan);
  return text + "; " + number(plan, plan.more) + " more of " + of + " would fit";
}

json names_json(const std::vector<std::string>& names) {
  json all = json::array();
  for (const std::string& name : names) all.push_back(printable(name, 400));
  return all;
}

json obstacles_json(const std::vector<NodeGroup>& groups) {
  json all = json::array();
  for (const NodeGroup& group : groups) {
    json sentences = json::array();
    for (const Obstacle& one : group.obstacles) sentences.push_back(words_of(one));
    all.push_back({{"nodes", names_json(group.nodes)}, {"answer", to_string(group.answer)}, {"obstacles", sentences}});
  }
  return all;
}

json count_json(const std::optional<int>& count) {
  return count ? json(*count) : json();
}

// A member, and beside it whether it is only the least.
void add_count(json& object, const std::string& name, const Count& count) {
  object[name] = count_json(count.pods);
  object[name + "_least"] = count.least;
}

json stranded_json(const std::optional<std::vector<Stranded>>& stranded) {
  if (!stranded) return {};
  json all = json::array();
  for (const Stranded& one : *stranded) {
    all.push_back(
        {{"nodes", names_json(one.nodes)}, {"unit", printable(one.unit)}, {"free", one.free}, {"why", one.why}});
  }
  return all;
}

json group_json(const GroupPlan& group) {
  json nodes = json::array();
  for (const NodeCount& one : group.nodes) nodes.push_back({{"node", printable(one.node, 400)}, {"pods", one.pods}});
  json object = {{"pod", printable(group.pod, 400)},
                 {"asked", count_json(group.asked)},
                 {"asks_for_hardware", group.has_hardware},
                 {"nodes", group.has_hardware ? std::move(nodes) : json()},
                 {"obstacles", obstacles_json(group.obstacles)}};
  add_count(object, "placed", group.placed);
  add_count(object, "empty_fleet", group.empty_fleet);
  return object;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  if (std::ranges::none_of(plan.groups, &GroupPlan::has_hardware)) {
    return "cannot tell: no pod of the manifest asks for a Neuron device or an interface\n";
  }
  std::string text = first_line(plan) + "\n";
  for (const GroupPlan& group : plan.groups) add_group(plan, group, text);
  add_stranded(plan, text);
  add_types(plan, text);
  if (!plan.not_counted.empty()) text += "\nnot counted: " + some_of(plan.not_counted, 20) + "\n";
  for (const std::string& note : plan.notes) text += "\n" + note + "\n";
  return text;
}

std::string plan_json(const Plan& plan) {
  json groups = json::array(), types = json::array();
  for (const GroupPlan& group : plan.groups) groups.push_back(group_json(group));
  for (const TypeCount& one : plan.types) {
    add_count(types.emplace_back(json{{"type", one.type}, {"why", one.why}}), "pods", one.pods);
  }
  json object = {{"format", "kubectl-neuron-plan/1"},
                 {"answer", to_string(plan.answer)},
                 {"asked", count_json(plan.asked)},
                 {"groups", std::move(groups)},
                 {"types", std::move(types)},
                 {"stranded", stranded_json(plan.stranded)},
                 {"not_counted", names_json(plan.not_counted)},
                 {"notes", plan.notes}};
  add_count(object, "placed", plan.placed);
  add_count(object, "more", plan.more);
  return object.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

std::vector<std::string> manifest_notes(const std::vector<PodGroup>& groups) {
  std::vector<std::string> notes;
  for (const PodGroup& group : groups) {
    const Pod& pod = group.pod;
    const std::string name = printable(full_name(pod), 400);
    if (!asks_for_hardware(pod)) notes.push_back(name + " asks for no Neuron device and no interface");
    if (!pod.scheduler.empty() && pod.scheduler != "default-scheduler")
      notes.push_back(name + " has schedulerName " + printable(pod.scheduler) + ", which may place it otherwise");
    if (!pod.gates.empty())
      notes.push_back(name + " has scheduling gate " + some_of(pod.gates) + ", and is counted as if that were removed");
  }
  return notes;
}

// ---- The command

namespace {

constexpr std::size_t kMostBytes = std::size_t{8} << 20U;
constexpr std::chrono::seconds kConversion{60};

Result<std::string> text_of(const std::string& file) {
  if (file == "-") return read_all(STDIN_FILENO, kMostBytes, "standard input");
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(file, failed);  // it may be a link
  return read_text_file(failed ? file : real.string(), kMostBytes);
}

bool is_json(std::string_view text) {
  return trim(text).starts_with("{");
}

// YAML as JSON: kubectl converts it, and creates nothing.
Result<std::string> converted(const Options& options, const std::string& file) {
  TRY_ASSIGN(const std::string kubectl, find_on_path("kubectl"));
  std::vector<std::string> words = {kubectl, "create", "--dry-run=client", "--validate=false", "-o", "json",
                                    "-f",    file};
  for (const std::string& word : options.cluster.words()) words.push_back(word);
  if (!options.cluster.kube_namespace.empty()) words.push_back("--namespace=" + options.cluster.kube_namespace);
  TRY_ASSIGN(const ChildOutcome outcome, run_program(words, kConversion, kMostBytes));
  if (outcome.end == ChildOutcome::End::exited && outcome.status == 0) return outcome.output;
  return fail(ErrorCode::invalid_argument,
              "kubectl cannot convert " + printable(file, 400) + ": " + failure_of(outcome));
}

Result<std::string> manifest_text(const Options& options, const std::string& file) {
  const bool is_input = file == "-";
  TRY_ASSIGN(const std::string text, text_of(file));
  if (is_json(text)) return text;
  if (!options.from.empty() || is_input) {
    return fail(ErrorCode::invalid_argument, std::string(is_input ? "standard input" : "with --from the manifest") +
                                                 " has to be JSON: kubectl create --dry-run=client -o json -f FILE");
  }
  return converted(options, file);
}

}  // namespace

void add_plan(CLI::App& command, PlanOptions& own) {
  command.footer(
      "Counts devices, cores, interfaces, claims, cpu, memory and other resources that\n"
      "nodes list, and names rules that it does not count.\n"
      "Exit status: 0 all fit, 1 not, 2 undetermined (also by the time limit of 20 s),\n"
      "or no node has a resource that is asked for.");
  command.add_option("-f,--filename", own.file, "Manifest; -: standard input, JSON")->required()->type_name("FILE");
  command.add_option("--replicas", own.replicas, "Pods of its first template that asks for hardware")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  command.add_option("-o,--output", own.output, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

int run_plan(const Options& options, const PlanOptions& own) {
  const auto text = manifest_text(options, own.file);
  if (!text) return fail_with(text.error());
  Wanted wanted;
  wanted.claim_templates = true;
  const auto fleet = read_fleet(options, wanted);
  if (!fleet) return fail_with(fleet.error());
  print_unknown(*fleet);
  const auto manifest = parse_manifest(*text, namespace_of(options, *fleet), fleet->classes);
  if (!manifest)
    return fail_with(
        Error(manifest.error()).with_context(own.file == "-" ? "standard input" : printable(own.file, 400)));
  constexpr std::chrono::seconds kLongest{20};
  Effort effort(kLongest);
  const Plan answer = plan(*fleet, *manifest, own.replicas, &effort);
  return print(own.output == "json" ? plan_json(answer) : plan_text(answer), exit_status(answer));
}

}  // namespace neuron::fleet
