#include "agent/health/efa.h"

#include <algorithm>

#include "agent/health/policy.h"

namespace neuron::health {
namespace {

using model::EfaInterface;
using model::Health;
using model::HealthState;
using model::HostScan;
using model::Presence;
using model::ScanPart;

std::string label_of(const EfaInterface& efa) {
  return efa.name.empty() ? model::to_string(efa.bdf) : efa.name + " (" + model::to_string(efa.bdf) + ")";
}

Health judge_verbs(const EfaInterface& efa, bool none_has_verbs) {
  if (efa.uverbs) {
    return make_verdict(HealthState::unhealthy, "verbs_node_missing",
                        label_of(efa) + ": dev/infiniband/" + *efa.uverbs + " does not exist",
                        "restart udev or reload ib_uverbs");
  }
  if (none_has_verbs) {
    Health health = without_verbs(false);
    health.sentence = label_of(efa) + ": " + health.sentence;
    return health;
  }
  return make_verdict(HealthState::unhealthy, "verbs_missing",
                      label_of(efa) + ": no entry in sys/class/infiniband_verbs names it", "reload the efa driver");
}

// What may have been left out of the scan when an interface is not answering.
std::vector<ScanPart> parts_of(const HostScan& scan, const EfaInterface& efa) {
  std::vector<ScanPart> parts = {{ScanPart::Kind::efa, 0, efa.bdf}, {ScanPart::Kind::efa_classes}};
  for (const model::Unanswered& one : scan.unanswered) {
    const bool is_its_own =
        one.part.kind == ScanPart::Kind::verbs && efa.uverbs == "uverbs" + std::to_string(one.part.index);
    if (is_its_own) parts.push_back(one.part);
  }
  return parts;
}

// An admin command that the device never completed: the one counter that says the device itself is lost, where the
// others tell of the network or of a workload (docs/reference/efa.md#counters).
std::uint64_t newly_lost_commands(const EfaInterface& efa, HealthMemory& memory) {
  if (!efa.no_completion_cmds) return 0;
  std::uint64_t& baseline = memory.lost_commands.try_emplace(efa.bdf, *efa.no_completion_cmds).first->second;
  baseline = std::min(baseline, *efa.no_completion_cmds);
  return *efa.no_completion_cmds - baseline;
}

Health judge_efa(const HostScan& scan, const EfaInterface& efa, bool none_has_verbs, HealthMemory& memory) {
  const std::uint64_t lost = newly_lost_commands(efa, memory);
  if (efa.presence == Presence::vanished) {
    return make_verdict(HealthState::unhealthy, "efa_vanished", label_of(efa) + " left the PCI bus",
                        "look at the kernel log; reboot or replace the instance");
  }
  if (efa.presence == Presence::not_answering) return silent_verdict(scan, label_of(efa), parts_of(scan, efa));
  if (!efa.driver_bound) {
    return make_verdict(HealthState::unhealthy, "efa_driver_unbound", label_of(efa) + ": no efa driver is bound to it",
                        "load the efa driver, or bind it to the function");
  }
  if (efa.name.empty()) {
    return make_verdict(HealthState::unhealthy, "rdma_device_missing",
                        label_of(efa) + ": the driver is bound but shows no RDMA device", "look at the kernel log");
  }
  if (!efa.uverbs || (!efa.node_present && memory.verbs_nodes_seen)) return judge_verbs(efa, none_has_verbs);
  if (lost > 0) {
    return make_verdict(HealthState::unhealthy, "no_completion_cmds",
                        label_of(efa) + ": the device did not answer " + std::to_string(lost) + " new command" +
                            (lost == 1 ? "" : "s") + " (hw_counters/no_completion_cmds)",
                        "look at the kernel log; reload the efa driver, or replace the instance");
  }
  if (!scan.devices.empty() && efa.p2p && efa.p2p->empty()) {
    return make_verdict(HealthState::degraded, "no_peer_memory",
                        label_of(efa) + ": p2p is empty, no RDMA to and from Neuron memory",
                        "load the Neuron driver, or update the efa driver");
  }
  return {HealthState::healthy, "", "", ""};
}

}  // namespace

Health silent_verdict(const HostScan& scan, const std::string& name, const std::vector<ScanPart>& parts) {
  const auto hangs = std::find_first_of(scan.unanswered.begin(), scan.unanswered.end(), parts.begin(), parts.end(),
                                        [](const auto& one, const ScanPart& part) { return one.part == part; });
  const std::string what = hangs == scan.unanswered.end()
                               ? std::string("a read of it has not come back")
                               : to_string(hangs->part) + " has not come back since " + hangs->since;
  return make_verdict(HealthState::unhealthy, "not_answering", name + ": " + what,
                      "look at the kernel log for hung tasks; if it stays, reboot or replace the instance");
}

Health make_verdict(HealthState state, std::string_view reason, std::string sentence, std::string_view action) {
  return {state, std::string(reason), std::move(sentence), std::string(action)};
}

std::vector<Health> judge_efas(const HostScan& scan, HealthMemory& memory) {
  for (const EfaInterface& efa : scan.efas) memory.verbs_nodes_seen = memory.verbs_nodes_seen || efa.node_present;
  const bool none_has_verbs =
      std::none_of(scan.efas.begin(), scan.efas.end(), [](const EfaInterface& efa) { return efa.uverbs.has_value(); });
  std::vector<Health> verdicts;
  for (const EfaInterface& efa : scan.efas) {
    verdicts.push_back(judge_efa(scan, efa, none_has_verbs, memory));
  }
  return verdicts;
}

Health without_verbs(bool module_loaded) {
  const std::string sentence = "EFA is present but unusable: ";
  if (!module_loaded) {
    return make_verdict(HealthState::unhealthy, kNoVerbs, sentence + "the module ib_uverbs is not loaded",
                        "run: modprobe ib_uverbs; to keep it, name ib_uverbs in /etc/modules-load.d/efa.conf");
  }
  return make_verdict(HealthState::unhealthy, "verbs_devices_missing",
                      sentence + "ib_uverbs is loaded, but shows no verbs device",
                      "reload the modules: modprobe -r efa ib_uverbs; modprobe ib_uverbs; modprobe efa");
}

}  // namespace neuron::health
