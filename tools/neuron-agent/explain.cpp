#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
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
                            .may_hang = "a driver or the kubelet",
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

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json health_json(const model::Health& health) {
  return {{"state", std::string(model::to_string(health.state))},
          {"reason", text_or_null(health.reason)},
          {"sentence", text_or_null(health.sentence)},
          {"action", text_or_null(health.action)}};
}

template <typename T>
Json sourced(const model::Maybe<T>& maybe, Json value) {
  if (!maybe) return nullptr;
  return {{"value", std::move(value)}, {"origin", maybe->origin == model::Origin::live ? "live" : "assumed"}};
}

Json units_json(const HeldUnits& units) {
  Json kubelet = Json::object();
  for (std::size_t i = 0; i < units.ids.size(); ++i) {
    const KubeletView view = units.kubelet[i];
    kubelet[units.ids[i]] = view == KubeletView::unknown   ? Json(nullptr)
                            : view == KubeletView::healthy ? Json("Healthy")
                                                           : Json("Unhealthy");
  }
  return {{"resource", units.resource}, {"claim", text_or_null(units.claim)}, {"admin_access", units.admin_access},
          {"ids", units.ids},           {"kubelet", std::move(kubelet)},      {"unknown_here", units.unknown}};
}

Json device_json(const HeldDevice& device) {
  const model::NeuronDevice facts = device.facts.value_or(model::NeuronDevice{});
  return {{"index", device.index},
          {"shown_by_the_machine", device.facts.has_value()},
          {"bdf", sourced(facts.bdf, facts.bdf ? Json(model::to_string(facts.bdf->value)) : Json(nullptr))},
          {"numa_node", sourced(facts.numa_node, facts.numa_node ? Json(facts.numa_node->value) : Json(nullptr))},
          {"core_ids", device.cores},
          {"physical_cores", device.physical_cores},
          {"whole", device.whole},
          {"health", health_json(device.health)},
          {"device_health", device.facts ? Json(std::string(model::to_string(facts.health.state))) : Json(nullptr)},
          {"shared_with", device.shared_with}};
}

Json efa_json(const HeldEfa& efa) {
  return {{"name", efa.name},
          {"shown_by_the_machine", efa.facts.has_value()},
          {"bdf", efa.facts ? Json(model::to_string(efa.facts->bdf)) : Json(nullptr)},
          {"numa_node", efa.facts ? or_null(efa.facts->numa_node) : Json(nullptr)},
          {"nearest_devices", efa.nearest_to},
          {"nearest_to_its_own", efa.is_near},
          {"health", efa.facts ? health_json(efa.facts->health) : Json(nullptr)}};
}

Json nearness_json(const Nearness& near) {
  return {{"shape", text_or_null(near.shape)},
          {"hops", or_null(near.hops)},
          {"best_hops", or_null(near.best_hops)},
          {"numa_nodes", near.numa_nodes},
          {"nearest_efa_interfaces", or_null(near.near_efas)},
          {"best_nearest_efa_interfaces", or_null(near.best_efas)},
          {"as_near_as_possible", !near.is_worse_than_possible()},
          {"nearer_and_free_now", near.better_now}};
}

}  // namespace

Report explain(const Options& options) {
  return report_in_child(options, kWords,
                         [&](const std::string& directory) { return make_report(options, directory); });
}

std::string explain_json(const ExplainedPod& pod, const ExplainFacts& facts) {
  Json containers = Json::array();
  for (const ExplainedContainer& container : pod.containers) {
    Json units = Json::array();
    Json devices = Json::array();
    Json efas = Json::array();
    for (const HeldUnits& one : container.units) units.push_back(units_json(one));
    for (const HeldDevice& one : container.devices) devices.push_back(device_json(one));
    for (const HeldEfa& one : container.efas) efas.push_back(efa_json(one));
    containers.push_back({{"name", container.name},
                          {"units", std::move(units)},
                          {"devices", std::move(devices)},
                          {"efa_interfaces", std::move(efas)},
                          {"nearness", nearness_json(container.nearness)}});
  }
  return dump({{"schema", kExplainSchema},
               {"verdict", has_findings(pod) ? "findings" : "healthy"},
               {"namespace", pod.pod_namespace},
               {"pod", pod.pod},
               {"node",
                {{"instance_type", text_or_null(facts.host.instance_type)},
                 {"instance_id", text_or_null(facts.host.instance_id)}}},
               {"checkpoint_unread", text_or_null(facts.checkpoint_unread)},
               {"containers", std::move(containers)},
               {"other_resources", pod.foreign}});
}

}  // namespace neuron::agent
