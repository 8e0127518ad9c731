#include "agent/health/efa.h"

#include <algorithm>

#include "agent/health/reasons.h"

namespace neuron::health {
namespace {

using model::EfaInterface;
using model::Health;
using model::HostScan;
using model::Presence;
using model::ScanPart;

std::string label_of(const EfaInterface& efa) {
  return efa.name.empty() ? model::to_string(efa.bdf) : efa.name + " (" + model::to_string(efa.bdf) + ")";
}

Health verdict_on_verbs(const EfaInterface& efa, bool none_has_verbs) {
  if (efa.uverbs) {
    return verdict(reasons::kVerbsNodeMissing, label_of(efa) + ": dev/infiniband/" + *efa.uverbs + " does not exist");
  }
  if (none_has_verbs) {
    Health health = without_verbs(false);
    health.sentence = label_of(efa) + ": " + health.sentence;
    return health;
  }
  return verdict(reasons::kVerbsMissing, label_of(efa) + ": sys/class/infiniband_verbs has no entry for it");
}

// Parts that may be missing from the scan when an interface is not answering.
std::vector<ScanPart> parts_of(const HostScan& scan, const EfaInterface& efa) {
  std::vector<ScanPart> parts = {{ScanPart::Kind::efa, 0, efa.bdf}, {ScanPart::Kind::efa_classes}};
  for (const model::Unanswered& one : scan.unanswered) {
    const bool is_its_own =
        one.part.kind == ScanPart::Kind::verbs && efa.uverbs == "uverbs" + std::to_string(one.part.index);
    if (is_its_own) parts.push_back(one.part);
  }
  return parts;
}

// One command that the device leaves unanswered closes the admin queue until the driver is bound anew, in every release
// of it; the counter then stands still (docs/reference/efa.md#counters). So any value above 0 means dead, whenever the
// agent started; the other counters are about the network or a workload.
std::optional<Health> verdict_on_admin_queue(const EfaInterface& efa) {
  const std::uint64_t lost = efa.no_completion_cmds.value_or(0);
  if (lost == 0 && !efa.admin_queue_closed) return std::nullopt;
  const std::string seen = lost > 0 ? "the device did not answer " + std::to_string(lost) + " command" +
                                          (lost == 1 ? "" : "s") + " of its driver (hw_counters/no_completion_cmds)"
                                    : "its counters are no longer readable (ports/1/hw_counters: no such device)";
  return verdict(reasons::kNoCompletionCmds, label_of(efa) + ": " + seen + "; its admin queue is closed");
}

Health verdict_on(const HostScan& scan, const EfaInterface& efa, bool none_has_verbs, const HealthMemory& memory) {
  if (efa.presence == Presence::vanished)
    return verdict(reasons::kEfaVanished, label_of(efa) + " vanished from the PCI bus");
  if (efa.presence == Presence::unread) return verdict_on_unread_list(scan, label_of(efa), "sys/bus/pci/devices");
  if (efa.presence == Presence::not_answering) {
    return verdict_on_silence(scan, label_of(efa), parts_of(scan, efa));
  }
  if (!efa.driver_bound) {
    return verdict(reasons::kEfaDriverUnbound, label_of(efa) + ": no efa driver is bound to it");
  }
  if (is_unread_list(scan, ScanPart::Kind::efa_classes) && (efa.name.empty() || !efa.uverbs)) {
    return verdict_on_unread_list(scan, label_of(efa), "sys/class/infiniband");
  }
  if (efa.name.empty()) {
    return verdict(reasons::kRdmaDeviceMissing, label_of(efa) + ": the driver is bound but shows no RDMA device");
  }
  if (!efa.uverbs || (!efa.node_present && memory.verbs_nodes_seen)) return verdict_on_verbs(efa, none_has_verbs);
  if (auto dead = verdict_on_admin_queue(efa)) return *std::move(dead);
  if (!scan.devices.empty() && efa.p2p && efa.p2p->empty()) {
    return verdict(reasons::kNoPeerMemory, label_of(efa) + ": p2p is empty, no RDMA to and from Neuron memory");
  }
  return healthy();
}

}  // namespace

Health verdict_on_silence(const HostScan& scan, const std::string& name, const std::vector<ScanPart>& parts) {
  const auto hangs = std::ranges::find_first_of(scan.unanswered, parts, {}, &model::Unanswered::part);
  const std::string what = hangs == scan.unanswered.end()
                               ? std::string("a read of it has not returned")
                               : to_string(hangs->part) + " has not returned since " + hangs->since;
  return verdict(reasons::kNotAnswering, name + ": " + what);
}

Health verdict_on_unread_list(const HostScan& scan, const std::string& name, std::string_view list) {
  const auto problem =
      std::ranges::find_if(scan.problems, [&](const model::ReadProblem& one) { return one.path.starts_with(list); });
  const std::string why = problem == scan.problems.end() ? std::string(list) : sentence(*problem);
  return verdict(reasons::kUnread,
                 name + ": the list it would be on was not read since the agent started (" + why + ')');
}

std::vector<Health> verdicts_on_efas(const HostScan& scan, HealthMemory& memory) {
  for (const EfaInterface& efa : scan.efas) memory.verbs_nodes_seen = memory.verbs_nodes_seen || efa.node_present;
  const bool none_has_verbs =
      std::ranges::none_of(scan.efas, [](const EfaInterface& efa) { return efa.uverbs.has_value(); });
  std::vector<Health> verdicts;
  verdicts.reserve(scan.efas.size());
  for (const EfaInterface& efa : scan.efas) verdicts.push_back(verdict_on(scan, efa, none_has_verbs, memory));
  return verdicts;
}

Health without_verbs(bool module_loaded) {
  const std::string sentence = "EFA is present but unusable: ";
  if (!module_loaded) {
    return verdict(reasons::kIbUverbsNotLoaded, sentence + "the module ib_uverbs is not loaded");
  }
  return verdict(reasons::kVerbsDevicesMissing, sentence + "ib_uverbs is loaded, but shows no verbs device");
}

}  // namespace neuron::health
