#include "tools/neuron-agent/explain_command.h"

#include <unistd.h>

#include <cerrno>

#include "agent/base/child_process.h"
#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/health/assess.h"
#include "agent/holdings/numbering.h"
#include "agent/host/root_source.h"
#include "agent/host/scanner.h"
#include "agent/rpc/pod_resources.h"
#include "plugin/kubelet/checkpoint.h"
#include "tools/neuron-agent/explain_pod.h"
#include "tools/neuron-agent/explain_text.h"

namespace neuron::agent {
namespace {

constexpr std::size_t kMaxOutput = std::size_t{4} << 20U;

std::string socket_of(const ExplainOptions& options) {
  return options.kubelet_dir + "/pod-resources/kubelet.sock";
}

// Asks for holdings, which are required, and for health, which is not.
Result<void> ask_kubelet(const ExplainOptions& options, ExplainFacts& facts) {
  const std::string socket = socket_of(options);
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

// Core ids that a device plugin gave mean what they meant then, whatever LNC is now.
void adopt_numbering(const ExplainOptions& options, ExplainFacts& facts) {
  const std::string path = options.kubelet_dir + "/device-plugins/" + std::string(plugin::kCheckpointName);
  const auto checkpoint = plugin::read_checkpoint(path);
  if (!checkpoint && checkpoint.error().code != ErrorCode::not_found) {
    facts.checkpoint_unread = printable(checkpoint.error().message, 320);
  }
  if (!checkpoint || checkpoint->numbering.given.empty()) return;
  model::HostScan& host = facts.host;
  const auto lnc = holdings::lnc_in_use(checkpoint->numbering, host);
  if (lnc && (!host.lnc || host.lnc->value != *lnc)) host.lnc = {*lnc, model::Origin::live};
}

std::string not_here(const PodChoice& choice, const ExplainOptions& options) {
  std::string text = "no pod " + printable(options.pod, 320) + " on this node, of " + std::to_string(choice.pods) +
                     " that the kubelet lists here";
  std::string near;
  for (const std::string& name : choice.near) near += (near.empty() ? "" : ", ") + name;
  if (!near.empty()) text += "; did you mean " + near + "?";
  return text + "\nkubectl get pods --all-namespaces -o wide shows the node of a pod: run this in the agent there";
}

// Whether the pod's name alone stands for several.
std::string several(const PodChoice& choice) {
  std::string names;
  for (const std::string& name : choice.near) names += (names.empty() ? "" : ", ") + name;
  return "several pods are named " + printable(choice.pod, 320) + ": " + names + "; give the namespace, too";
}

bool is_ambiguous(const PodChoice& choice) {
  std::size_t same = 0;
  for (const std::string& name : choice.near) same += name.ends_with('/' + choice.pod) ? 1 : 0;
  return same > 1;
}

// All of it, in the child. The status is the verdict; the text is its output, or the reason of an undetermined one.
int explain_in_child(const ExplainOptions& options, const std::string& directory, int output) {
  const auto say = [&](ExplainVerdict verdict, const std::string& text) {
    return static_cast<int>(write_all(output, text, "the answer") ? verdict : ExplainVerdict::cannot_tell);
  };
  const auto root = host::FsRoot::open(directory);
  if (!root) return say(ExplainVerdict::cannot_tell, root.error().message);
  if (!root->is_live() && !options.kubelet_dir_set) {
    return say(ExplainVerdict::cannot_tell,
               "the root is not this machine, so its kubelet is unknown: set --kubelet-dir");
  }
  ExplainFacts facts;
  facts.driver = options.dra_driver_name;
  if (const auto asked = ask_kubelet(options, facts); !asked) {
    return say(ExplainVerdict::cannot_tell, "the kubelet does not list its pods' devices: " + asked.error().message +
                                                "\nit answers root only, at pod-resources/kubelet.sock below its "
                                                "directory (--kubelet-dir); check that it runs");
  }
  const PodChoice choice = choose_pod(facts.allocations, options.pod);
  if (!choice.pod_namespace) {
    return say(ExplainVerdict::cannot_tell, is_ambiguous(choice) ? several(choice) : not_here(choice, options));
  }
  host::Scanner scanner(
      *root, {.with_topology = false, .with_processes = false, .kernel_log = host::KernelLogUse::where_allowed});
  health::AssessMemory memory;
  facts.host = health::assess(scanner.scan(), memory, std::chrono::steady_clock::now()).host;
  adopt_numbering(options, facts);
  add_held_interfaces(facts);
  const ExplainedPod pod = explain_pod(facts, *choice.pod_namespace, choice.pod);
  const bool json = options.output == ReportForm::json;
  return say(has_findings(pod) ? ExplainVerdict::findings : ExplainVerdict::healthy,
             json ? explain_json(pod, facts) : explain_text(pod, facts));
}

ExplainReport cannot_tell(const ExplainOptions& options, const std::string& reason) {
  ExplainReport report;
  report.error = reason;
  if (options.output == ReportForm::json) report.output = explain_json_failure(reason);
  return report;
}

}  // namespace

ExplainReport explain(const ExplainOptions& options) {
  using End = ChildOutcome::End;
  const auto source = host::RootSource::open(options.root);
  if (!source) return cannot_tell(options, source.error().message);
  const auto outcome = run_in_child([&](int output) { return explain_in_child(options, source->directory(), output); },
                                    options.timeout, kMaxOutput);
  if (!outcome) return cannot_tell(options, outcome.error().message);
  if (outcome->end == End::out_of_time) {
    return cannot_tell(options,
                       "it took longer than " + std::to_string(options.timeout.count()) +
                           " ms: a driver or the kubelet may hang; inspect the kernel log, or raise --timeout");
  }
  if (outcome->end == End::killed) {
    return cannot_tell(options, "the scan died of signal " + std::to_string(outcome->status) + "; please report it");
  }
  if (outcome->end == End::cut) return cannot_tell(options, "the answer is too long; please report it");
  if (outcome->status != 0 && outcome->status != 1) return cannot_tell(options, outcome->output);
  ExplainReport report;
  report.verdict = outcome->status == 0 ? ExplainVerdict::healthy : ExplainVerdict::findings;
  report.output = outcome->output;
  return report;
}

}  // namespace neuron::agent
