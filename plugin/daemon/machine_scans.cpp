#include "plugin/daemon/machine_scans.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/ultraserver.h"
#include "agent/health/assess.h"
#include "agent/host/neuron_sysfs.h"
#include "agent/model/snapshot.h"

namespace neuron::plugin {
namespace {

model::SnapshotPtr assessed(model::HostScan scan) {
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = snapshot->generation = 1;
  health::AssessMemory memory;
  snapshot->host = health::assess(std::move(scan), memory, std::chrono::steady_clock::now()).host;
  return snapshot;
}

using model::Resource;

std::string describe(const model::HostScan& host) {
  std::string text = fmt::format("instance-type={} driver={} layout={} devices={} efas={}",
                                 host.instance_type.empty() ? "unknown" : host.instance_type,
                                 host.driver_version.empty() ? "none" : host.driver_version, to_string(host.layout),
                                 host.devices.size(), host.efas.size());
  if (host.lnc) text += fmt::format(" lnc={}", host.lnc->value);
  return text;
}

// Each change of state or reason; units with the same change share a line. The lists sent to the kubelet are logged
// elsewhere: a unit may be withheld for other reasons.
void log_health(const std::vector<model::PartChange>& changes) {
  std::vector<std::pair<std::string, const model::PartChange*>> groups;  // names, and one of them
  for (const model::PartChange& change : changes) {
    const auto& [kind, name, before, after] = change;
    const bool same = before.state == after.state && before.reason == after.reason;
    if (same || (after.reason.empty() && before.reason.empty())) continue;
    if (!groups.empty() && groups.back().second->after == after && groups.back().second->before == before) {
      groups.back().first += ',' + name;
    } else {
      groups.emplace_back(name, &change);
    }
  }
  for (const auto& [names, change] : groups) {
    const model::Health& health = change->after;
    if (health.reason.empty()) {
      spdlog::info("health changed unit={} state={} was={} reason={}", names, to_string(health.state),
                   to_string(change->before.state), change->before.reason);
    } else {
      spdlog::warn("health changed unit={} state={} reason={}: {}{}{}", names, to_string(health.state), health.reason,
                   health.sentence, health.action.empty() ? "" : "; ", health.action);
    }
  }
}

// Devices of the instance type and those present; a missing one may come back.
std::vector<int> devices_of(const model::HostScan& host) {
  std::set<int> indices;
  for (const model::NeuronDevice& device : host.devices) indices.insert(device.index);
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  for (int i = 0; type != nullptr && i < type->device_count; ++i) indices.insert(i);
  return {indices.begin(), indices.end()};
}

std::string list_of(const std::vector<int>& devices) {
  return devices.empty() ? "none" : format_int_list(devices);
}

bool offers_something(const core::OfferPolicy& offer, const model::HostScan& host) {
  if (offer.serves(Resource::efa) && !host.efas.empty()) return true;
  const std::vector<int> devices = host.devices.empty() ? std::vector<int>{} : devices_of(host);
  return std::ranges::any_of(devices, [&](int device) {
    return std::ranges::any_of(model::kAllResources, [&](Resource resource) {
      return model::has_cores(resource) && offer.offers(resource, device);
    });
  });
}

OfferLine nothing_offered(const core::OfferPolicy& offer, const model::HostScan& host) {
  return {true, "nothing of this node is offered: it has " + std::to_string(host.devices.size()) +
                    " Neuron devices and " + std::to_string(host.efas.size()) + " EFA interfaces, and --resources " +
                    core::format_resource_list(offer.resources) + " with --core-devices " +
                    core::format_core_devices(offer.split) +
                    " excludes them; name a resource that it has, or keep the agent off such nodes"};
}

}  // namespace

monitor::WatchedScan::MakeScan scan_maker(const RootPtr& root, const std::shared_ptr<ScanTimer>& timer,
                                          host::KernelLogUse kernel_log) {
  struct Machine {
    RootPtr root;
    host::Scanner scanner;
    Machine(RootPtr opened, host::KernelLogUse use, std::shared_ptr<host::LastSeen> last)
        : root(std::move(opened)), scanner(*root, {.kernel_log = use}, std::move(last)) {}
  };
  return [root, timer, kernel_log, last = std::make_shared<host::LastSeen>()] {
    return [machine = std::make_shared<Machine>(root, kernel_log, last), timer](const model::MayRead& may_read) {
      const auto begun = std::chrono::steady_clock::now();
      model::HostScan scan = machine->scanner.scan(may_read);
      timer->note(std::chrono::steady_clock::now() - begun);
      return scan;
    };
  };
}

model::SnapshotPtr scan_now(const host::FsRoot& root, host::KernelLogUse kernel_log) {
  host::Scanner scanner(root, {.kernel_log = kernel_log});
  return assessed(scanner.scan());
}

Result<model::SnapshotPtr> scan_once(const std::string& root, host::KernelLogUse kernel_log, Workers& workers) {
  TRY_ASSIGN(auto opened, host::FsRoot::open(root));
  const RootPtr machine = std::make_shared<const host::FsRoot>(std::move(opened));
  monitor::BoundedScans scans(workers, scan_maker(machine, std::make_shared<ScanTimer>(), kernel_log));
  const auto snapshot = assessed(scans.scan());
  for (const model::Unanswered& one : snapshot->host.unanswered) {
    spdlog::warn("scan incomplete, values left out: {} has not returned since {}", to_string(one.part), one.since);
  }
  log_missing(snapshot->host);
  log_problems(snapshot->host);
  return snapshot;
}

std::optional<std::uint64_t> memory_in_use(const host::FsRoot& root, const grant::NodeUnitsPtr& node, int device,
                                           int core) {
  const model::NeuronDevice* known = node ? node->device(device) : nullptr;
  return host::process_memory_of_core(root, device, core, known != nullptr ? known->memory_bytes : std::nullopt);
}

void log_missing(const model::HostScan& host) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  if (type == nullptr) return;
  const auto warn_if_short = [&](std::string_view what, std::size_t seen, int expected) {
    if (seen < static_cast<std::size_t>(expected)) {
      spdlog::warn("hardware missing: {} of {} {} of a {} present; see neuron-ls and the kernel log", seen, expected,
                   what, host.instance_type);
    }
  };
  using Kind = model::ScanPart::Kind;
  if (!is_unread_list(host, Kind::devices)) warn_if_short("Neuron devices", host.devices.size(), type->device_count);
  if (!is_unread_list(host, Kind::pci)) warn_if_short("EFA interfaces", host.efas.size(), type->efa_count);
}

void log_problems(const model::HostScan& host) {
  std::set<std::string> of_devices;
  for (const auto& device : host.devices) of_devices.insert(device.health.sentence);
  for (const std::string& problem : sentences(host.problems)) {
    if (!of_devices.contains(problem)) spdlog::warn("scan found a problem unit=node: {}", problem);
  }
  for (const auto& device : host.devices) {
    for (const std::string& problem : sentences(device.problems)) {
      spdlog::warn("scan found a problem unit=neuron{}: {}", device.index, problem);
    }
  }
  for (const auto& efa : host.efas) {
    for (const std::string& problem : sentences(efa.problems)) {
      spdlog::warn("scan found a problem unit={}: {}", efa.name.empty() ? to_string(efa.bdf) : efa.name, problem);
    }
  }
}

std::vector<OfferLine> offer_lines(const core::OfferPolicy& offer, const model::HostScan& host) {
  if (host.devices.empty() && host.efas.empty()) return {};
  if (!offers_something(offer, host)) return {nothing_offered(offer, host)};
  if (host.devices.empty()) return {};
  if (offer.mixes()) {
    return {{false,
             "every device is offered as neuron and as neuroncore, which the scheduler counts separately: pods of a "
             "queue that mixes both fail with UnexpectedAdmissionError; use one name per node (--resources) or a split "
             "(--core-devices), see docs/resources.md#one-name-or-two"}};
  }
  if (!offer.split) return {};
  std::vector<int> as_cores;
  std::vector<int> whole;
  std::vector<int> hidden;
  const std::vector<int> devices = devices_of(host);
  for (const int device : devices) {
    const bool is_whole = offer.offers(Resource::neuron, device) || offer.offers(Resource::neurondevice, device);
    const bool is_cores = offer.offers(Resource::neuroncore, device);
    (is_cores ? as_cores : is_whole ? whole : hidden).push_back(device);
  }
  std::vector<OfferLine> lines = {
      {false, "devices offered only as cores: " + list_of(as_cores) + "; only whole: " + list_of(whole)}};
  std::vector<int> absent;
  std::set_difference(offer.split->listed.begin(), offer.split->listed.end(), devices.begin(), devices.end(),
                      std::back_inserter(absent));
  if (!absent.empty()) {
    lines.push_back({true, "--core-devices names devices that this node does not have: " + list_of(absent)});
  }
  if (!hidden.empty()) {
    lines.push_back(
        {true, "devices " + list_of(hidden) +
                   " are not offered: --resources excludes the resource that --core-devices assigns to them"});
  }
  return lines;
}

void InventoryLog::log(const model::SnapshotPtr& snapshot) {
  const model::HostScan& host = snapshot->host;
  const model::SnapshotDiff changes = diff(last_ ? last_->host : model::HostScan{}, host);
  std::string node = describe(host);
  if (node != last_node_) {
    spdlog::info("node {}", node);
    log_missing(host);
    log_offer(host);
  }
  if (!last_ && changes.units.empty() && host.unread_lists.empty()) {
    spdlog::info("no Neuron device and no EFA interface found; nothing is advertised until one appears");
  }
  log_health(changes.units);
  log_ignored_lines(host.kernel_log);
  log_election(host);
  if (changes.problems) log_problems(host);
  last_node_ = std::move(node);
  last_ = snapshot;
}

// Logged when the count reaches a power of two: a pod may write any number of such lines.
void InventoryLog::log_ignored_lines(const model::KernelLog& log) {
  if (std::bit_width(log.ignored_lines) <= std::bit_width(std::exchange(last_ignored_, log.ignored_lines))) return;
  spdlog::warn(
      "kernel log lines ignored count={}: NEURON_HW_ERR= lines that are malformed, or name a device, core or serial "
      "number that this node does not have; see dmesg and neuron_kernel_log_ignored_lines_total",
      log.ignored_lines);
}

// The state of the election, and its result. Before the result no Neuron device is offered by claim.
void InventoryLog::log_election(const model::HostScan& host) {
  core::Election election = core::election_of(host);
  if (election.sentence == last_election_) return;
  const bool is_blocked = election.phase == core::Election::Phase::blocked;
  if (!election.sentence.empty()) {
    spdlog::log(is_blocked ? spdlog::level::warn : spdlog::level::info, "UltraServer state changed: {}{}{}",
                election.sentence, election.action.empty() ? "" : "; what to do: ", election.action);
  }
  last_election_ = std::move(election.sentence);
}

// Again only when another set of devices changes the lines.
void InventoryLog::log_offer(const model::HostScan& host) {
  if (!offer_) return;
  std::string text;
  const std::vector<OfferLine> lines = offer_lines(*offer_, host);
  for (const OfferLine& line : lines) text += line.text;
  if (text == last_offer_) return;
  last_offer_ = std::move(text);
  for (const OfferLine& line : lines) {
    spdlog::log(line.warning ? spdlog::level::warn : spdlog::level::info, "resources offered: {}", line.text);
  }
}

}  // namespace neuron::plugin
