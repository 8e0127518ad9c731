#include "plugin/dra/claim/claim_plan.h"

#include <algorithm>

#include "agent/base/parse.h"

namespace neuron::plugin::dra {
namespace {

// A request's name becomes part of a CDI name: it is a DNS label.
Result<void> check_request(const std::string& request) {
  constexpr std::size_t kMaxLabel = 63;
  const bool is_label =
      !request.empty() && request.size() <= kMaxLabel && std::all_of(request.begin(), request.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      });
  if (is_label) return {};
  return fail(ErrorCode::invalid_argument, "\"" + printable(request, 64) + "\" is not a valid request name");
}

RequestShare& share_of(ClaimPlan& plan, const ClaimResult& result) {
  for (RequestShare& share : plan.shares) {
    if (share.request == result.request) return share;
  }
  plan.shares.push_back({result.request, {}, result.admin_access, {}});
  return plan.shares.back();
}

// Adds a device, or a request to the one that is there: only admin access may have it twice.
Result<void> add_device(ClaimPlan& plan, const ClaimResult& result, Hardware hardware) {
  for (GrantedDevice& known : plan.devices) {
    if (known.device != result.device || known.admin_access != result.admin_access) continue;
    if (!result.admin_access) {
      return fail(ErrorCode::failed_precondition, "\"" + result.device + "\" is allocated twice in this claim");
    }
    if (std::find(known.requests.begin(), known.requests.end(), result.request) == known.requests.end()) {
      known.requests.push_back(result.request);
    }
    return {};
  }
  plan.devices.push_back(
      {{result.request}, result.pool, result.device, result.share_id, std::move(hardware), result.admin_access});
  return {};
}

Result<void> add_result(ClaimPlan& plan, const Claim& claim, const ClaimResult& result, const grant::NodeUnits& node,
                        const UnhealthyTaint& taint) {
  TRY(check_request(result.request));
  TRY_ASSIGN(Hardware hardware, hardware_of(node, result.device));
  if (!result.admin_access) {  // admin access may include unhealthy devices
    TRY(check_health(node, result, taint));
    if (const auto both = overlap(hardware, plan.held())) {
      return fail(ErrorCode::failed_precondition, *both + " is allocated twice in this claim");
    }
  }
  RequestShare& share = share_of(plan, result);
  if (share.admin_access != result.admin_access) {
    return fail(ErrorCode::failed_precondition,
                "the request \"" + result.request + "\" has devices with and without admin access");
  }
  TRY_ASSIGN(share.config, config_for(claim.configs, result.full_request()));
  share.hardware.add(hardware);
  return add_device(plan, result, std::move(hardware));
}

}  // namespace

Hardware ClaimPlan::held() const {
  Hardware hardware;
  for (const RequestShare& share : shares) {
    if (!share.admin_access) hardware.add(share.hardware);
  }
  return hardware;
}

Result<ClaimPlan> plan_of(const Claim& claim, const grant::NodeUnits& node, const std::string& pool,
                          const UnhealthyTaint& taint) {
  if (!claim.is_allocated || claim.results.empty()) {
    return fail(ErrorCode::failed_precondition,
                "the claim has no allocation by this driver; the scheduler allocates it for the next pod");
  }
  ClaimPlan plan;
  for (const ClaimResult& result : claim.results) {
    if (result.pool != pool) {
      return fail(ErrorCode::failed_precondition, "\"" + printable(result.device, 64) + "\" is of the pool \"" +
                                                      printable(result.pool, 64) + "\", and this node has \"" + pool +
                                                      "\"; delete the pod, so that a new one is scheduled");
    }
    TRY(add_result(plan, claim, result, node, taint));
  }
  return plan;
}

Result<void> check_known_health(const Claim& claim, const grant::NodeUnits& known, const UnhealthyTaint& taint) {
  for (const ClaimResult& result : claim.results) {
    if (result.admin_access) continue;
    auto checked = check_health(known, result, taint);
    if (!checked && checked.error().code != ErrorCode::not_found) return checked;
  }
  return {};
}

}  // namespace neuron::plugin::dra
