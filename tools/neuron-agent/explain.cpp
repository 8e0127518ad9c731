#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "agent/health/assess.h"
#include "agent/holdings/numbering.h"
#include "agent/host/scanner.h"
#include "agent/rpc/pod_resources.h"
#include "plugin/kubelet/checkpoint.h"
#include "tools/neuron-agent/explain_pod.h"
#include "tools/neuron-agent/reports.h"

namespace neuron::agent {
namespace {

const ReportWords kWords = {.schema = kExplainSchema,
                            .work = "it",
                            .may_hang = "a driver or the kubelet",
                            .killed = "the scan",
                            .output = "the answer"};

constexpr std::size_t kMostNear = 5;
constexpr std::size_t kMaxText = 600;  // bytes that are compared; a namespace and a name have 317
constexpr std::size_t kMaxEdits = 4;
constexpr std::size_t kMaxShownName = 320;

// Names that begin with the wanted one ("train" and "train-0"), or are a few edits away; the nearest first.
std::vector<std::string> near_names(const std::set<std::pair<std::string, std::string>>& pods, std::string_view space,
                                    std::string_view name) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& [pod_namespace, pod] : pods) {
    if (name.empty() || name.size() > kMaxText || pod.size() > kMaxText) continue;
    const std::size_t edits = edit_distance(name, pod);
    const bool goes_on = pod.starts_with(name);
    if (!goes_on && edits > std::min(kMaxEdits, name.size() / 2)) continue;
    const std::size_t elsewhere = pod_namespace == space || space.empty() ? 0 : 1;
    ranked.emplace_back((goes_on ? 0 : 2 * edits) + elsewhere, pod_namespace + '/' + pod);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> near;
  for (std::size_t i = 0; i < std::min(ranked.size(), kMostNear); ++i) near.push_back(ranked[i].second);
  return near;
}

// Asks for holdings, which are required, and for health, which is not.
Result<void> ask_kubelet(const Options& options, ExplainFacts& facts) {
  const std::string socket = options.pod_resources_socket();
  if (::access(socket.c_str(), R_OK | W_OK) != 0) return fail(error_from_errno(errno, socket));
  const auto deadline = options.timeout / 4;
  rpc::PodResourcesClient client(socket);
  auto listed = client.list(deadline);
  if (!listed) return fail(Error(listed.error()).with_context(socket));
  facts.allocations = *std::move(listed);
  auto allocatable = client.allocatable(deadline);
  if (allocatable) facts.allocatable = *std::move(allocatable);
  return {};
}

// Core ids of a device plugin keep the meaning that they had when they were given, under another LNC too.
void adopt_numbering(const Options& options, ExplainFacts& facts) {
  const std::string path = options.device_plugins_dir() + "/" + std::string(plugin::kCheckpointName);
  const auto checkpoint = plugin::read_checkpoint(path);
  if (!checkpoint && checkpoint.error().code != ErrorCode::not_found) {
    facts.checkpoint_unread = printable(checkpoint.error().message, kMaxShownName);
  }
  if (!checkpoint || checkpoint->numbering.given.empty()) return;
  model::HostScan& host = facts.host;
  const auto lnc = holdings::lnc_in_use(checkpoint->numbering, host);
  if (lnc && (!host.lnc || host.lnc->value != *lnc)) host.lnc = {*lnc, model::Origin::live};
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Why no pod was chosen: its name alone stands for several, or it is not here.
std::string no_choice(const PodChoice& choice, const std::string& wanted) {
  const auto same = std::count_if(choice.near.begin(), choice.near.end(),
                                  [&](const std::string& name) { return name.ends_with('/' + choice.pod); });
  if (same > 1) {
    return "several pods are named " + printable(choice.pod, kMaxShownName) + ": " + joined(choice.near) +
           "; give the namespace, too";
  }
  std::string text = "no pod " + printable(wanted, kMaxShownName) + " on this node, of " + std::to_string(choice.pods) +
                     " that the kubelet lists here";
  if (!choice.near.empty()) text += "; did you mean " + joined(choice.near) + "?";
  return text + "\nkubectl get pods --all-namespaces -o wide shows the node of a pod: run this in the agent there";
}

Report make_report(const Options& options, const std::string& directory) {
  const auto root = host::FsRoot::open(directory);
  if (!root) return cannot_tell(root.error().message);
  if (!root->is_live() && !options.kubelet_dir_set) {
    return cannot_tell("the root is not this machine, so its kubelet is unknown: set --kubelet-dir");
  }
  ExplainFacts facts;
  facts.driver = options.dra.pool.driver;
  if (const auto asked = ask_kubelet(options, facts); !asked) {
    return cannot_tell("the kubelet does not list its pods' devices: " + asked.error().message +
                       "\nit answers root only, at pod-resources/kubelet.sock below its directory (--kubelet-dir); "
                       "check that it runs");
  }
  const PodChoice choice = choose_pod(facts.allocations, options.pod);
  if (!choice.pod_namespace) return cannot_tell(no_choice(choice, options.pod));
  host::Scanner scanner(
      *root, {.with_topology = false, .with_processes = false, .kernel_log = host::KernelLogUse::where_allowed});
  health::AssessMemory memory;
  facts.host = health::assess(scanner.scan(), memory, std::chrono::steady_clock::now()).host;
  adopt_numbering(options, facts);
  add_held_interfaces(facts);
  const ExplainedPod pod = explain_pod(facts, *choice.pod_namespace, choice.pod);
  return {has_findings(pod) ? Verdict::findings : Verdict::good,
          options.output == ReportForm::json ? explain_json(pod, facts) : explain_text(pod, facts), ""};
}

}  // namespace

PodChoice choose_pod(const std::vector<model::Allocation>& allocations, std::string_view wanted) {
  const auto slash = wanted.find('/');
  const std::string_view space = slash == std::string_view::npos ? "" : wanted.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? wanted : wanted.substr(slash + 1);
  std::set<std::pair<std::string, std::string>> pods;
  for (const model::Allocation& one : allocations) pods.emplace(one.pod_namespace, one.pod);
  PodChoice choice;
  choice.pods = pods.size();
  choice.pod = std::string(name);
  std::vector<std::string> spaces;
  for (const auto& [pod_namespace, pod] : pods) {
    if (pod == name && (slash == std::string_view::npos || pod_namespace == space)) spaces.push_back(pod_namespace);
  }
  if (spaces.size() == 1) {
    choice.pod_namespace = spaces.front();
  } else {
    choice.near = near_names(pods, space, name);
  }
  return choice;
}

Report explain(const Options& options) {
  return report_in_child(options, kWords,
                         [&](const std::string& directory) { return make_report(options, directory); });
}

}  // namespace neuron::agent
