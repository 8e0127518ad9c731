#include "plugin/dra/claim/claim_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/hardware.h"
#include "agent/core/logical_cores.h"
#include "plugin/dra/claim/claim_config.h"
#include "plugin/dra/claim/claim_record.h"
#include "plugin/dra/slices/pool.h"

namespace neuron::plugin::dra {
namespace {

constexpr int kPlaces = 1024;  // device * kPlaces + place is the number of a place

std::string quoted(const std::string& pool_device) {
  return "\"" + printable(pool_device, 64) + "\"";
}

Error not_here(const std::string& pool_device) {
  return make_error(ErrorCode::not_found, RefusalReason::unknown_device,
                    quoted(pool_device) +
                        " is allocated, but this node has no such device; delete the pod, so "
                        "that a new one is scheduled onto present devices");
}

Error not_offered(const std::string& pool_device) {
  return make_error(ErrorCode::invalid_argument, RefusalReason::unknown_device,
                    quoted(pool_device) + " is not a device that this driver offers");
}

struct Named {
  core::PoolName name;
  Hardware hardware;
};

// Errors: also where only a part of the named hardware is there.
Result<Named> find(const grant::NodeUnits& node, const std::string& pool_device) {
  const auto name = core::parse_pool_name(pool_device);
  if (!name) return fail(not_offered(pool_device));
  const model::HostScan& host = node.snapshot().host;
  Hardware hardware = core::hardware_of(*name, host);
  if (hardware.empty()) return fail(not_here(pool_device));
  if (!std::holds_alternative<core::EfaName>(*name) &&
      hardware.devices.size() != core::named_devices(*name, host).size()) {
    return fail(not_here(pool_device));
  }
  return Named{*name, std::move(hardware)};
}

model::Health worst_health(const grant::NodeUnits& node, const Named& named) {
  std::optional<model::Health> worst;
  const auto add = [&](model::Resource resource, int unit) {
    const model::Health& health = node.health_of(resource, unit);
    if (!worst || model::badness(health.state) > model::badness(worst->state)) worst = health;
  };
  for (const HeldDevice& held : named.hardware.devices) {
    if (held.places.empty()) {
      add(model::Resource::neuron, held.device);
    } else {
      for (const int core : core::core_ids_of({{held}, {}}, node.snapshot().host))
        add(model::Resource::neuroncore, core);
    }
  }
  for (const std::string& efa : named.hardware.efas) {
    if (const auto unit = node.unit_of(model::Resource::efa, efa)) add(model::Resource::efa, *unit);
  }
  return worst.value_or(model::Health());
}

Result<void> check_numbered(const grant::NodeUnits& node, const std::string& pool_device) {
  const model::HostScan& host = node.snapshot().host;
  const auto name = core::parse_pool_name(pool_device);
  if (host.lnc || !host.lnc_is_unread || !name || std::holds_alternative<core::EfaName>(*name)) return {};
  return fail(ErrorCode::unavailable, RefusalReason::not_scanned,
              "opt/aws/neuron/logical_nc_config cannot be read, so the node's LNC is unknown; retried automatically");
}

// A request's name becomes part of a CDI name: it is a DNS label.
Result<void> check_request(const std::string& request) {
  if (is_dns_label(request)) return {};
  return fail(ErrorCode::invalid_argument, RefusalReason::bad_allocation,
              "\"" + printable(request, 64) + "\" is not a valid request name");
}

PlannedRequest& request_of(ClaimPlan& plan, const AllocationResult& result) {
  for (PlannedRequest& planned : plan.requests) {
    if (planned.name == result.request) return planned;
  }
  plan.requests.push_back({result.request, {}, result.admin_access, {}});
  return plan.requests.back();
}

// Adds a device, or a request to the one that is there: only admin access may have it twice.
Result<void> add_device(ClaimPlan& plan, const AllocationResult& result, Hardware hardware, bool is_share) {
  for (PlannedDevice& known : plan.devices) {
    if (known.device != result.device || known.admin_access != result.admin_access) continue;
    if (is_share && known.share_id != result.share_id) continue;
    if (!result.admin_access) {
      return fail(ErrorCode::failed_precondition, RefusalReason::bad_allocation,
                  "\"" + result.device + "\" is allocated twice in this claim");
    }
    if (std::ranges::find(known.requests, result.request) == known.requests.end()) {
      known.requests.push_back(result.request);
    }
    return {};
  }
  std::string share;
  if (is_share) {
    const HeldDevice& held = hardware.devices.front();
    share = core::to_string(core::ShareName{held.device, held.places});
  }
  plan.devices.push_back({{result.request},
                          result.pool,
                          result.device,
                          result.share_id,
                          std::move(hardware),
                          result.admin_access,
                          std::move(share)});
  return {};
}

Result<void> add_result(ClaimPlan& plan, const ResourceClaim& claim, const AllocationResult& result,
                        const grant::NodeUnits& node, const UnhealthyTaint& taint, const ChosenShares& chosen) {
  TRY(check_request(result.request));
  if (const auto name = core::parse_pool_name(result.device); name && std::holds_alternative<core::ShareName>(*name)) {
    return fail(not_offered(result.device));
  }
  TRY(check_numbered(node, result.device));
  TRY_ASSIGN(Hardware hardware, hardware_of(node, result.device));
  const auto share_of_device = chosen.find(share_key(result));
  const bool is_share = !result.admin_access && share_of_device != chosen.end();
  if (is_share) hardware = share_of_device->second;
  if (!result.admin_access) {  // admin access may include unhealthy devices
    if (!is_share) TRY(check_health(node, result, taint));
    if (const auto both = overlap(hardware, plan.held())) {
      return fail(ErrorCode::failed_precondition, RefusalReason::bad_allocation,
                  *both + " is allocated twice in this claim");
    }
  }
  PlannedRequest& planned = request_of(plan, result);
  if (planned.admin_access != result.admin_access) {
    return fail(ErrorCode::failed_precondition, RefusalReason::bad_allocation,
                "the request \"" + result.request + "\" has devices with and without admin access");
  }
  TRY_ASSIGN(planned.config, config_for(claim.configs, result.full_request()));
  planned.hardware.add(hardware);
  return add_device(plan, result, std::move(hardware), is_share);
}

// The LNC that a device is used with, and its user.
struct LncUse {
  int lnc = 0;
  std::string user;
  bool is_other_claim = false;
};

std::optional<int> lnc_of(const PlannedRequest& planned, std::optional<int> node_lnc) {
  if (!planned.computes()) return std::nullopt;
  return planned.config.lnc ? planned.config.lnc : node_lnc;
}

Error clash(int device, const LncUse& use, const std::string& request, int lnc) {
  return make_error(
      ErrorCode::failed_precondition, RefusalReason::lnc_clash,
      "neuron" + std::to_string(device) + " is used with logicalNeuronCore " + std::to_string(use.lnc) + " by " +
          use.user + ", and the request \"" + request + "\" requests it with " + std::to_string(lnc) +
          ": a device has one LNC value; use the same configuration for both, or request " +
          (use.is_other_claim ? "whole devices; retried automatically, succeeds once that claim is released"
                              : "cores of different devices"));
}

}  // namespace

Result<Hardware> hardware_of(const grant::NodeUnits& node, const std::string& pool_device) {
  TRY_ASSIGN(Named named, find(node, pool_device));
  const bool is_core = std::holds_alternative<core::CoreName>(named.name);
  if (is_core && named.hardware.devices[0].places.empty()) return fail(not_here(pool_device));  // LNC is unknown
  return std::move(named.hardware);
}

Result<Hardware> possible_hardware_of(const grant::NodeUnits& node, const std::string& pool_device) {
  const auto name = core::parse_pool_name(pool_device);
  if (!name || !std::holds_alternative<core::CoreName>(*name)) return hardware_of(node, pool_device);
  Hardware hardware = core::possible_hardware_of(*name, node.snapshot().host);
  if (hardware.empty()) return fail(not_here(pool_device));
  return hardware;
}

Result<void> check_health(const grant::NodeUnits& node, const AllocationResult& result, const UnhealthyTaint& taint) {
  TRY_ASSIGN(const Named named, find(node, result.device));
  const model::Health health = worst_health(node, named);
  if (health.state != model::HealthState::unhealthy) return {};
  if (!taint.effect.empty() && tolerates(result.tolerations, taint.key, health.reason, taint.effect)) return {};
  std::string why =
      quoted(result.device) + " is unhealthy: " + (health.sentence.empty() ? health.reason : health.sentence);
  if (!health.action.empty()) why += "; " + health.action;
  return fail(ErrorCode::failed_precondition, RefusalReason::unhealthy,
              why + "; delete the pod, so that a new one gets another device");
}

std::vector<MemoryGate::Core> cores_of(const grant::NodeUnits& node, const Hardware& hardware) {
  const model::HostScan& host = node.snapshot().host;
  std::vector<MemoryGate::Core> cores;
  for (const HeldDevice& held : hardware.devices) {
    const model::NeuronDevice* device = node.device(held.device);
    if (device == nullptr) continue;
    std::vector<int> places = held.places;
    const int count = device->physical_cores ? device->physical_cores->value : 0;
    for (int place = 0; held.places.empty() && place < count; ++place) places.push_back(place);
    for (const core::CorePlace& place : core::core_places(*device, host, places)) {
      const int id = held.device * node.topology().cores_per_device + place.place / (host.lnc ? host.lnc->value : 1);
      MemoryGate::Core core{"core " + std::to_string(id), held.device, place.physical, {}};
      for (const int other : place.others) {
        if (std::ranges::binary_search(places, other)) continue;
        core.maybe_of.push_back(held.device * kPlaces + other);
      }
      cores.push_back(std::move(core));
    }
  }
  return cores;
}

Hardware place_of(int number) {
  return {{{number / kPlaces, {number % kPlaces}}}, {}};
}

std::string share_key(const AllocationResult& result) {
  return result.share_id.value_or(result.full_request() + " " + result.device);
}

Hardware ClaimPlan::held() const {
  Hardware hardware;
  for (const PlannedRequest& planned : requests) {
    if (!planned.admin_access) hardware.add(planned.hardware);
  }
  return hardware;
}

Result<ClaimPlan> plan_of(const ResourceClaim& claim, const grant::NodeUnits& node, const std::string& pool,
                          const UnhealthyTaint& taint, const ChosenShares& chosen) {
  if (!claim.is_allocated || claim.results.empty()) {
    return fail(ErrorCode::failed_precondition, RefusalReason::bad_allocation,
                "the claim has no allocation by this driver; the scheduler allocates it for the next pod");
  }
  ClaimPlan plan;
  for (const AllocationResult& result : claim.results) {
    if (result.pool != pool) {
      return fail(ErrorCode::failed_precondition, RefusalReason::bad_allocation,
                  "\"" + printable(result.device, 64) + "\" is of the pool \"" + printable(result.pool, 64) +
                      "\", and this node has \"" + pool + "\"; delete the pod, so that a new one is scheduled");
    }
    TRY(add_result(plan, claim, result, node, taint, chosen));
  }
  return plan;
}

Result<void> check_known_health(const ResourceClaim& claim, const grant::NodeUnits& known, const UnhealthyTaint& taint,
                                const ChosenShares& chosen) {
  for (const AllocationResult& result : claim.results) {
    if (result.admin_access || chosen.contains(share_key(result))) continue;
    auto checked = check_health(known, result, taint);
    if (!checked && checked.error().code != ErrorCode::not_found) return checked;
  }
  return {};
}

Result<void> check_groups(const ClaimPlan& plan, const ClaimRecord* before, const grant::NodeUnits& node) {
  for (const PlannedDevice& one : plan.devices) {
    const auto name = core::parse_pool_name(one.device);
    const auto* group = name ? std::get_if<core::GroupName>(&*name) : nullptr;
    const auto is_it = [&](const PreparedDevice& known) { return known.device == one.device; };
    if (group == nullptr || (before != nullptr && std::ranges::any_of(before->devices, is_it))) continue;
    const std::vector<Group> offered = groups_of(node);
    if (std::ranges::find(offered, *group, &Group::name) == offered.end()) return fail(not_here(one.device));
  }
  return {};
}

bool is_same_allocation(const ClaimRecord& record, const ResourceClaim& claim) {
  // With the ids of shares, but for admin access: there several results on one device are one entry.
  std::set<std::tuple<std::string, std::string, std::string, std::string>> was, is;
  for (const PreparedDevice& device : record.devices) {
    for (const std::string& request : device.requests) {
      const bool is_admin = std::ranges::any_of(record.requests, [&](const RecordedRequest& one) {
        return one.planned.name == request && one.planned.admin_access;
      });
      was.emplace(request, device.pool, device.device, is_admin ? "" : device.share_id.value_or(""));
    }
  }
  for (const AllocationResult& result : claim.results) {
    is.emplace(result.request, result.pool, result.device, result.admin_access ? "" : result.share_id.value_or(""));
  }
  return was == is;
}

std::optional<Error> conflict(const ClaimRecords& records, const std::string& uid, const Hardware& hardware) {
  for (const auto& [other, record] : records) {
    if (other == uid) continue;
    const auto both = overlap(hardware, record->held());
    if (!both) continue;
    return make_error(ErrorCode::failed_precondition, RefusalReason::held_by_claim,
                      *both + " is held by the claim " + record->shown() +
                          ", which is not released yet; retried automatically. If it persists, delete the pod, so that "
                          "a new one gets other devices");
  }
  return std::nullopt;
}

std::optional<Error> lnc_clash(const std::vector<PlannedRequest>& requests, std::optional<int> node_lnc,
                               const ClaimRecords& records, const std::string& uid) {
  std::map<int, LncUse> uses;  // by device
  for (const auto& [other, record] : records) {
    if (other == uid || !record->is_completed) continue;
    for (const RecordedRequest& request : record->requests) {
      const auto lnc = lnc_of(request.planned, record->node_lnc);
      if (!lnc) continue;
      for (const HeldDevice& held : request.planned.hardware.devices) {
        uses.try_emplace(held.device, LncUse{*lnc, "the claim " + record->shown(), true});
      }
    }
  }
  for (const PlannedRequest& planned : requests) {
    const auto lnc = lnc_of(planned, node_lnc);
    if (!lnc) continue;
    for (const HeldDevice& held : planned.hardware.devices) {
      const auto& use =
          uses.try_emplace(held.device, LncUse{*lnc, "the request \"" + planned.name + "\"", false}).first->second;
      if (use.lnc != *lnc) return clash(held.device, use, planned.name, *lnc);
    }
  }
  return std::nullopt;
}

HeldNumbering numbering_of(const ClaimRecords& records) {
  HeldNumbering numbering;
  for (const auto& [uid, record] : records) {
    if (record->held().devices.empty()) continue;
    numbering.any = true;
    if (!numbering.lnc) numbering.lnc = record->node_lnc;
  }
  return numbering;
}

std::optional<Error> numbering_clash(const ClaimRecord& record, const ClaimRecords& records) {
  const std::optional<int> others = numbering_of(records).lnc;
  if (!others || !record.node_lnc || *others == *record.node_lnc || record.held().devices.empty()) return std::nullopt;
  return make_error(ErrorCode::failed_precondition, RefusalReason::lnc_clash,
                    "the claim was prepared with cores numbered by LNC " + std::to_string(*record.node_lnc) +
                        ", but they are now held as LNC " + std::to_string(*others) +
                        " numbers them; retried with the new numbers");
}

}  // namespace neuron::plugin::dra
