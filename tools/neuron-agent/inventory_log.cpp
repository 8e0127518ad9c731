#include "tools/neuron-agent/inventory_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/catalogue.h"
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

enum class Unhealthy { told_here, told_elsewhere };

// Each change of state or reason; in one line where several have the same verdict. What is wrong with a device or an
// interface that is withheld the lists for the kubelet tell, where there are any. Returns the sentences it wrote.
std::set<std::string> log_health(const std::vector<model::UnitChange>& changes, Unhealthy unhealthy) {
  const auto is_told = [&](const model::UnitChange& change, const model::Health& health) {
    const bool elsewhere = unhealthy == Unhealthy::told_elsewhere && change.name != "node";
    return !health.reason.empty() && !(elsewhere && health.state == model::HealthState::unhealthy);
  };
  std::vector<std::pair<std::string, const model::UnitChange*>> told;  // names, and one of them
  for (const model::UnitChange& change : changes) {
    const auto& [kind, name, before, after] = change;
    const bool same = before.state == after.state && before.reason == after.reason;
    if (same || !(is_told(change, after) || (after.reason.empty() && is_told(change, before)))) continue;
    if (!told.empty() && told.back().second->after == after && told.back().second->before == before) {
      told.back().first += ',' + name;
    } else {
      told.emplace_back(name, &change);
    }
  }
  std::set<std::string> sentences;
  for (const auto& [names, change] : told) {
    const model::Health& health = change->after;
    if (health.reason.empty()) {
      spdlog::info("{} {}, was {} reason={}", names, to_string(health.state), to_string(change->before.state),
                   change->before.reason);
    } else {
      spdlog::warn("{} {} reason={} {}{}{}", names, to_string(health.state), health.reason, health.sentence,
                   health.action.empty() ? "" : "; ", health.action);
      sentences.insert(health.sentence);
    }
  }
  return sentences;
}

}  // namespace

// The kubelet cannot tell, so somebody must.
void log_missing(const model::HostScan& host) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  if (type == nullptr) return;
  const auto warn_if_short = [&](std::string_view what, std::size_t seen, int expected) {
    if (seen < static_cast<std::size_t>(expected)) {
      spdlog::warn("{} of {} {} of a {} are here; neuron-ls and the kernel log may tell why", seen, expected, what,
                   host.instance_type);
    }
  };
  warn_if_short("Neuron devices", host.devices.size(), type->device_count);
  warn_if_short("EFA interfaces", host.efas.size(), type->efa_count);
}

void log_problems(const model::HostScan& host, const std::set<std::string>& told) {
  for (const std::string& problem : sentences(host.problems)) {
    if (!told.contains(problem)) spdlog::warn("host problem=\"{}\"", problem);
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
  if (!last_ && changes.units.empty()) {
    spdlog::info("no Neuron device and no EFA interface here; nothing is advertised until one appears");
  }
  const auto told = log_health(changes.units, offer_ ? Unhealthy::told_elsewhere : Unhealthy::told_here);
  if (changes.problems) log_problems(host, told);
  last_node_ = std::move(node);
  last_ = std::move(snapshot);
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
    spdlog::log(line.warning ? spdlog::level::warn : spdlog::level::info, line.text);
  }
}

}  // namespace neuron::agent
