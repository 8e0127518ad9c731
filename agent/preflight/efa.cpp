// EFA interfaces: their number, their usability, and libfabric's view of them.

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/health/assess.h"
#include "agent/model/health.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight::rules {
namespace {

using model::EfaInterface;
using model::HostScan;
namespace reason = model::reason;

constexpr const char* kVerbsClass = "sys/class/infiniband_verbs";
constexpr std::size_t kMaxShown = 8;

using Ask = std::function<Evidence(const EfaInterface&)>;

std::string pci_path(const EfaInterface& efa) {
  return "sys/bus/pci/devices/" + model::to_string(efa.bdf);
}

std::vector<std::string> labels_of(const std::vector<const EfaInterface*>& efas) {
  std::vector<std::string> labels;
  for (const EfaInterface* efa : efas) labels.push_back(label_of(*efa));
  return labels;
}

// The first few, and the number of others.
std::vector<Evidence> ask_each(const std::vector<const EfaInterface*>& efas, const Ask& ask) {
  std::vector<Evidence> evidence;
  for (const EfaInterface* efa : efas) {
    if (evidence.size() == kMaxShown) {
      evidence.push_back({"...", "the same for " + std::to_string(efas.size() - kMaxShown) + " more"});
      break;
    }
    evidence.push_back(ask(*efa));
  }
  return evidence;
}

std::string which(const std::vector<const EfaInterface*>& efas, std::size_t all) {
  if (efas.size() == all && all > 1) return "all " + std::to_string(all) + " EFA interfaces";
  if (efas.size() > kMaxShown) return std::to_string(efas.size()) + " of " + std::to_string(all) + " EFA interfaces";
  return joined(labels_of(efas));
}

// The addresses of the official table without an interface, where the table fits the existing interfaces.
std::vector<Evidence> absent_efas(const HostScan& scan, const core::InstanceType& type) {
  std::set<model::Bdf> absent;
  for (const core::EfaFacts& facts : type.efas) absent.insert(facts.bdf);
  for (const EfaInterface& efa : scan.efas) {
    if (absent.erase(efa.bdf) == 0) return {};
  }
  std::vector<Evidence> evidence;
  for (const model::Bdf& bdf : absent) {
    if (evidence.size() == kMaxShown) break;
    std::vector<int> near;
    for (std::size_t i = 0; i < type.devices.size(); ++i) {
      if (type.devices[i].nearest_efa == bdf) near.push_back(static_cast<int>(i));
    }
    const std::string place =
        near.empty() ? "" : ", where the official table has the interface nearest to neuron" + format_int_list(near);
    evidence.push_back({"sys/bus/pci/devices/" + model::to_string(bdf), "missing" + place});
  }
  return evidence;
}

void check_count(const HostScan& scan, Report& report) {
  const core::InstanceType* type = core::find_instance_type(scan.instance_type);
  if (type == nullptr) return;
  const auto expected = static_cast<std::size_t>(type->efa_count);
  if (scan.efas.size() >= expected) return;
  std::vector<Evidence> evidence = {{"sys/devices/virtual/dmi/id/product_name",
                                     type->name + ", which can have " + counted(expected, "EFA interface")},
                                    {"sys/bus/pci/devices", counted(scan.efas.size(), "EFA function")}};
  const std::string fix =
      "attach EFA interfaces (or EFA-only ones) in the launch template, one per network card; they cannot be added to "
      "a running instance";
  if (scan.efas.empty()) {
    report.add(Severity::info, "efas_none_attached",
               "no EFA interface is attached; a " + type->name + " can have " + std::to_string(expected), evidence,
               fix);
    return;
  }
  for (Evidence& absent : absent_efas(scan, *type)) evidence.push_back(std::move(absent));
  report.warning("efas_missing",
                 std::to_string(scan.efas.size()) + " of " + counted(expected, "EFA interface") + " of a " +
                     type->name + (scan.efas.size() == 1 ? " is" : " are") + " there",
                 evidence, fix);
}

void report_without_uverbs(const HostScan& scan, const PreflightFacts& facts,
                           const std::vector<const EfaInterface*>& efas, Report& report) {
  const bool loaded = facts.uverbs_module == PathState::present;
  const model::Health health = health::without_verbs(loaded);
  report.error(health.reason, health.sentence,
               {{"sys/class/infiniband", counted(efas.size(), "EFA interface") + ", e.g. " + efas.front()->name},
                {kVerbsClass, facts.verbs_class == PathState::present ? "no entry for them" : "missing"},
                {"sys/module/ib_uverbs", loaded ? "present" : "missing"}},
               health.action, efas.size() == scan.efas.size() ? std::vector<std::string>{} : labels_of(efas));
}

void report_verdict(const HostScan& scan, const PreflightFacts& facts, const model::Health& verdict,
                    const std::vector<const EfaInterface*>& efas, Report& report) {
  const std::string& reason = verdict.reason;
  if (reason == reason::kIbUverbsNotLoaded) return report_without_uverbs(scan, facts, efas, report);
  std::string sentence = which(efas, scan.efas.size());
  Ask ask;
  if (reason == reason::kEfaDriverUnbound) {
    sentence += ": no efa driver is bound";
    ask = [](const EfaInterface& efa) { return Evidence{pci_path(efa) + "/driver", "not efa"}; };
  } else if (reason == reason::kRdmaDeviceMissing) {
    sentence += ": the efa driver is bound but shows no RDMA device";
    ask = [](const EfaInterface& efa) { return Evidence{pci_path(efa) + "/infiniband", "missing"}; };
  } else if (reason == reason::kVerbsMissing) {
    sentence += ": no verbs device";
    ask = [](const EfaInterface& efa) {
      return Evidence{std::string(kVerbsClass) + "/uverbs*/ibdev", "none is " + efa.name};
    };
  } else {
    sentence += ": no node in dev/infiniband";
    ask = [](const EfaInterface& efa) { return Evidence{"dev/infiniband/" + efa.uverbs.value_or("?"), "missing"}; };
  }
  report.error(reason, sentence, ask_each(efas, ask), verdict.action, labels_of(efas));
}

void check_usable(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  std::vector<const model::Health*> order;  // the first verdict of each reason
  std::map<std::string, std::vector<const EfaInterface*>> groups;
  for (const EfaInterface& efa : scan.efas) {
    const bool is_reported_here =
        efa.health.state == model::HealthState::unhealthy && efa.health.reason != reason::kNoCompletionCmds;
    if (!is_reported_here) continue;
    if (!groups.contains(efa.health.reason)) order.push_back(&efa.health);
    groups[efa.health.reason].push_back(&efa);
  }
  for (const model::Health* verdict : order) report_verdict(scan, facts, *verdict, groups[verdict->reason], report);
  const bool hidden = std::ranges::any_of(scan.efas, [](const auto& efa) { return efa.uverbs.has_value(); }) &&
                      std::ranges::none_of(scan.efas, [](const auto& efa) { return efa.node_present; });
  if (hidden && facts.own_dev) {
    report.not_checked.push_back({"dev/infiniband/uverbs*", "missing, but this /dev belongs to a container"});
  }
}

// Dead until the driver is bound again (docs/reference/efa.md#counters).
void check_lost_commands(const HostScan& scan, Report& report) {
  std::vector<Evidence> evidence;
  std::vector<std::string> names;
  std::string fix;
  for (const EfaInterface& efa : scan.efas) {
    if (efa.health.reason != reason::kNoCompletionCmds) continue;
    names.push_back(label_of(efa));
    fix = efa.health.action;
    const std::string folder = "sys/class/infiniband/" + efa.name;
    evidence.push_back(
        efa.no_completion_cmds.value_or(0) > 0
            ? Evidence{folder + "/hw_counters/no_completion_cmds", std::to_string(*efa.no_completion_cmds)}
            : Evidence{folder + "/ports/1/hw_counters/no_completion_cmds", "no such device"});
  }
  if (names.empty()) return;
  report.error("efa_commands_lost",
               joined(names) +
                   ": the device did not answer a command of the efa driver, so its admin queue is closed until the "
                   "driver is rebound",
               std::move(evidence), fix, names);
}

// Whether the interfaces can move the memory of Neuron devices (docs/reference/efa.md#peer-memory).
void check_peer_memory(const HostScan& scan, Report& report) {
  if (scan.devices.empty()) return;
  std::vector<const EfaInterface*> wrong;
  std::vector<const EfaInterface*> silent;
  for (const EfaInterface& efa : scan.efas) {
    if (!efa.driver_bound) continue;
    if (!efa.p2p) silent.push_back(&efa);
    if (efa.p2p && *efa.p2p != "NEURON") wrong.push_back(&efa);
  }
  if (!wrong.empty()) {
    report.error("p2p_not_neuron",
                 which(wrong, scan.efas.size()) + ": bound, but without access to Neuron memory (p2p is not NEURON)",
                 ask_each(wrong,
                          [](const EfaInterface& efa) {
                            return Evidence{pci_path(efa) + "/p2p", efa.p2p->empty() ? "empty" : *efa.p2p};
                          }),
                 "load the Neuron driver; if it is loaded, update the efa driver (2.6.0 or newer from AWS)",
                 labels_of(wrong));
  }
  if (!silent.empty()) {
    report.not_checked.push_back({pci_path(*silent.front()) + "/p2p",
                                  "no such file: the efa driver is older than 2.6.0 or the kernel's own, so access to "
                                  "Neuron memory is unknown"});
  }
}

bool usable(const EfaInterface& efa) {
  return efa.driver_bound && !efa.name.empty() && efa.node_present;
}

// libfabric before 2.2 gives up the efa provider when it meets a foreign verbs device
// (docs/reference/efa.md#libfabric).
bool foreign_may_disable(const std::string& version) {
  const auto parts = split(version, '.');
  if (parts.size() < 2) return true;
  const auto major = parse_int(parts[0], 0, 9999);
  const auto minor = parse_int(parts[1], 0, 9999);
  return !major || !minor || *major < 2 || (*major == 2 && *minor < 2);
}

std::vector<Evidence> fabric_evidence(const FabricFacts& fabric) {
  std::string said = fabric.error_code != 0
                         ? "fi_getinfo: -" + std::to_string(fabric.error_code) + " (" + fabric.message + ")"
                         : counted(fabric.interfaces.size(), "interface");
  std::vector<Evidence> evidence = {
      {"libfabric" + (fabric.version.empty() ? "" : " " + fabric.version) + ", provider " + fabric.provider, said}};
  for (const std::string& line : fabric.log) evidence.push_back({"libfabric's log", line});
  return evidence;
}

void report_blind(const HostScan& scan, const PreflightFacts& facts, const std::vector<const EfaInterface*>& unseen,
                  Report& report) {
  std::vector<Evidence> evidence = fabric_evidence(facts.fabric);
  evidence.push_back({"sys/class/infiniband", joined(labels_of(unseen))});
  std::vector<std::string> culprits;
  for (const ForeignRdma& foreign : facts.foreign_rdma) {
    if (!foreign.has_verbs_node) continue;
    culprits.push_back(foreign.name);
    evidence.push_back({"sys/class/infiniband/" + foreign.name + "/device/driver",
                        foreign.driver.empty() ? "not an EFA device" : foreign.driver + ", not an EFA device"});
  }
  const std::string sentence = "libfabric does not see " + which(unseen, scan.efas.size());
  if (!culprits.empty() && foreign_may_disable(facts.fabric.version)) {
    report.warning("fabric_blind",
                   sentence + (culprits.size() == 1 ? ": the RDMA device " : ": the RDMA devices ") + joined(culprits) +
                       (culprits.size() == 1 ? " is not an EFA device" : " are not EFA devices") +
                       ", and libfabric before 2.2.0 disables the efa provider when it finds one",
                   std::move(evidence),
                   "use libfabric 2.2.0 or newer (AWS's EFA installer) where the workload runs; containers bring their "
                   "own",
                   labels_of(unseen));
    return;
  }
  report.error("fabric_blind", sentence + ", although sysfs shows no problem", std::move(evidence),
               "check libfabric's message, and that this user may open /dev/infiniband/uverbs* for reading and writing",
               labels_of(unseen));
}

}  // namespace

void check_efas(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  check_count(scan, report);
  check_usable(scan, facts, report);
  check_lost_commands(scan, report);
  check_peer_memory(scan, report);
}

void check_fabric(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  using State = FabricFacts::State;
  const FabricFacts& fabric = facts.fabric;
  const std::string fix = "containers bring their own libfabric: try fi_info -p efa in the workload's image";
  switch (fabric.state) {
    case State::not_tried:
    case State::no_library:
      if (!fabric.message.empty()) {
        report.not_checked.push_back(
            {"libfabric", (fabric.state == State::not_tried ? "not tried: " : "") + fabric.message});
      }
      return;
    case State::timed_out:
      return report.warning("fabric_timeout",
                            "libfabric did not answer within " + std::to_string(fabric.budget.count()) + " ms",
                            fabric_evidence(fabric), "an EFA device may hang: inspect the kernel log; " + fix);
    case State::died:
      return report.warning("fabric_died",
                            "the process that queried libfabric died of signal " + std::to_string(fabric.signal),
                            fabric_evidence(fabric), fix);
    case State::failed:
      return report.warning("fabric_failed", "libfabric could not be queried: " + fabric.message,
                            fabric_evidence(fabric), fix);
    case State::answered:
      break;
  }
  std::vector<const EfaInterface*> unseen;
  for (const EfaInterface& efa : scan.efas) {
    const bool seen = std::ranges::find(fabric.interfaces, efa.name) != fabric.interfaces.end();
    if (usable(efa) && !seen) unseen.push_back(&efa);
  }
  if (!unseen.empty()) report_blind(scan, facts, unseen, report);
}

}  // namespace neuron::preflight::rules
