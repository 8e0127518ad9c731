#include "tools/neuron-agent/inventory_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <bit>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/catalogue.h"
#include "agent/core/ultraserver.h"
#include "agent/model/snapshot_diff.h"
#include "tools/neuron-agent/offer_log.h"

namespace neuron::agent {
namespace {

std::string describe(const model::HostScan& host) {
  std::string text = fmt::format("instance-type={} driver={} layout={} devices={} efas={}",
                                 host.instance_type.empty() ? "unknown" : host.instance_type,
                                 host.driver_version.empty() ? "none" : host.driver_version, to_string(host.layout),
                                 host.devices.size(), host.efas.size());
  if (host.lnc) text += fmt::format(" lnc={}", host.lnc->value);
  return text;
}

// Each change of state or reason; in one line where several have the same verdict. What the kubelet is told of it the
// lists tell: a unit may be withheld for other reasons, and stays withheld when a graver one comes.
void log_health(const std::vector<model::UnitChange>& changes) {
  std::vector<std::pair<std::string, const model::UnitChange*>> told;  // names, and one of them
  for (const model::UnitChange& change : changes) {
    const auto& [kind, name, before, after] = change;
    const bool same = before.state == after.state && before.reason == after.reason;
    if (same || (after.reason.empty() && before.reason.empty())) continue;
    if (!told.empty() && told.back().second->after == after && told.back().second->before == before) {
      told.back().first += ',' + name;
    } else {
      told.emplace_back(name, &change);
    }
  }
  for (const auto& [names, change] : told) {
    const model::Health& health = change->after;
    if (health.reason.empty()) {
      spdlog::info("{} {}, was {} reason={}", names, to_string(health.state), to_string(change->before.state),
                   change->before.reason);
    } else {
      spdlog::warn("{} {} reason={} {}{}{}", names, to_string(health.state), health.reason, health.sentence,
                   health.action.empty() ? "" : "; ", health.action);
    }
  }
}

}  // namespace

// The kubelet cannot tell, so somebody must.
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
    if (!of_devices.contains(problem)) spdlog::warn("host problem=\"{}\"", problem);
  }
  for (const auto& device : host.devices) {
    for (const std::string& problem : sentences(device.problems)) {
      spdlog::warn("neuron{} problem=\"{}\"", device.index, problem);
    }
  }
  for (const auto& efa : host.efas) {
    for (const std::string& problem : sentences(efa.problems)) {
      spdlog::warn("efa={} problem=\"{}\"", efa.name.empty() ? to_string(efa.bdf) : efa.name, problem);
    }
  }
}

void InventoryLog::operator()(model::SnapshotPtr snapshot) {
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
  last_ = std::move(snapshot);
}

// When there are any, and whenever they have doubled since: a pod may write as many as it likes.
void InventoryLog::log_ignored_lines(const model::KernelLog& log) {
  if (std::bit_width(log.ignored_lines) <= std::bit_width(std::exchange(told_ignored_, log.ignored_lines))) return;
  spdlog::warn(
      "kernel log lines ignored count={}: NEURON_HW_ERR= lines that are malformed, or name a device, core or serial "
      "number that this node does not have; see dmesg and neuron_kernel_log_ignored_lines_total",
      log.ignored_lines);
}

// How far the election is, and in the end its result. While it has not ended no Neuron device is offered by claim.
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

// Once, and again only where another set of devices changes what there is to say.
void InventoryLog::log_offer(const model::HostScan& host) {
  if (!offer_) return;
  std::string said;
  const std::vector<OfferLine> lines = offer_lines(*offer_, host);
  for (const OfferLine& line : lines) said += line.text;
  if (said == last_offer_) return;
  last_offer_ = std::move(said);
  for (const OfferLine& line : lines) {
    spdlog::log(line.warning ? spdlog::level::warn : spdlog::level::info, "resources offered: {}", line.text);
  }
}

}  // namespace neuron::agent
