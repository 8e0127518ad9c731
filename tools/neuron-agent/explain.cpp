#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/logical_cores.h"
#include "agent/health/assess.h"
#include "agent/host/scanner.h"
#include "agent/rpc/pod_resources.h"
#include "plugin/kubelet/checkpoint.h"
#include "tools/neuron-agent/explain_pod.h"
#include "tools/neuron-agent/reports.h"

namespace neuron::agent {
namespace {

const ReportWords kWords = {.schema = kExplainSchema,
                            .work = "it",
                            .may_hang = "a driver or the kubelet may hang; inspect the kernel log",
                            .killed = "the scan",
                            .output = "the answer"};

constexpr std::size_t kMaxShownName = 320;

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
  const auto lnc = core::lnc_in_use(checkpoint->numbering, host);
  if (lnc && (!host.lnc || host.lnc->value != *lnc)) host.lnc = {*lnc, model::Origin::live};
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
  if (!choice.pod_namespace) return cannot_tell(no_choice_text(choice, options.pod));
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

Report explain(const Options& options) {
  return report_in_child(options, kWords,
                         [&](const std::string& directory) { return make_report(options, directory); });
}

}  // namespace neuron::agent
