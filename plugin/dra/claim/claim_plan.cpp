#include "plugin/dra/claim/claim_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

// A kind has one field, which takes one of a few numbers.
struct ConfigKind {
  std::string_view name;
  std::string_view field;
  std::vector<int> accepted;
  std::optional<int> RequestConfig::*member;
};

const std::array<ConfigKind, 2>& config_kinds() {
  static const std::array<ConfigKind, 2> kAll{
      {{"NeuronConfig", "logicalNeuronCore", {1, 2}, &RequestConfig::lnc},
       {"UltraServerConfig", "ultraserverMode", {1, 2, 4}, &RequestConfig::ultraserver_mode}}};
  return kAll;
}

constexpr std::array<std::string_view, 3> kApiVersions{"neuron.aws.com/v1", "neuron.aws.com/v1alphav1",
                                                       "resource.neuron.aws.com/v1alphav1"};
constexpr std::size_t kMaxShown = 64;

std::string shown(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), kMaxShown);
}

Error wrong_config(const std::string& what) {
  return make_error(ErrorCode::invalid_argument, "error applying config: " + what);
}

std::string takes(const ConfigKind& kind) {
  std::string text = std::string(kind.name) + " takes " + std::string(kind.field) + ": ";
  for (std::size_t i = 0; i < kind.accepted.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == kind.accepted.size() ? " or " : ", ") + std::to_string(kind.accepted[i]);
  }
  return text;
}

Result<const ConfigKind*> kind_of(const json& parameters) {
  if (!parameters.is_object()) return fail(wrong_config("the parameters are not an object with apiVersion and kind"));
  const json& version = kube::member(parameters, "apiVersion");
  if (!version.is_string() || std::find(kApiVersions.begin(), kApiVersions.end(),
                                        version.get_ref<const std::string&>()) == kApiVersions.end()) {
    return fail(wrong_config("apiVersion is " + shown(version) + "; it must be \"neuron.aws.com/v1\" (the older " +
                             std::string(kApiVersions[1]) + " and " + std::string(kApiVersions[2]) +
                             " are accepted too)"));
  }
  for (const ConfigKind& kind : config_kinds()) {
    if (kube::text_of(parameters, "kind") == kind.name) return &kind;
  }
  return fail(wrong_config("kind is " + shown(kube::member(parameters, "kind")) +
                           "; it must be NeuronConfig or UltraServerConfig"));
}

// The number of the kind's field, with nothing else beside it.
Result<int> value_of(const ConfigKind& kind, const json& parameters) {
  for (const auto& [key, value] : parameters.items()) {
    if (key == "apiVersion" || key == "kind" || key == kind.field) continue;
    return fail(
        wrong_config("strict decoding error: unknown field \"" + printable(key, kMaxShown) + "\"; " + takes(kind)));
  }
  const json& value = kube::member(parameters, kind.field);
  if (value.is_null()) return fail(wrong_config(std::string(kind.field) + " is missing; " + takes(kind)));
  const bool is_accepted = value.is_number_integer() && std::any_of(kind.accepted.begin(), kind.accepted.end(),
                                                                    [&](int number) { return value == number; });
  if (!is_accepted) return fail(wrong_config(std::string(kind.field) + " is " + shown(value) + "; " + takes(kind)));
  return value.get<int>();
}

bool is_for(const OpaqueConfig& config, const std::string& request) {
  const std::string base = request.substr(0, request.find('/'));
  return config.requests.empty() ||
         std::any_of(config.requests.begin(), config.requests.end(),
                     [&](const std::string& name) { return name == request || name == base; });
}

// A request's name becomes part of a CDI name: it is a DNS label.
Result<void> check_request(const std::string& request) {
  constexpr std::size_t kMaxLabel = 63;
  if (is_object_name(request, kMaxLabel) && request.find('.') == std::string::npos) return {};
  return fail(ErrorCode::invalid_argument, "\"" + printable(request, 64) + "\" is not a valid request name");
}

RequestShare& share_of(ClaimPlan& plan, const AllocationResult& result) {
  for (RequestShare& share : plan.shares) {
    if (share.request == result.request) return share;
  }
  plan.shares.push_back({result.request, {}, result.admin_access, {}});
  return plan.shares.back();
}

// Adds a device, or a request to the one that is there: only admin access may have it twice.
Result<void> add_device(ClaimPlan& plan, const AllocationResult& result, Hardware hardware) {
  for (PlannedDevice& known : plan.devices) {
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

Result<void> add_result(ClaimPlan& plan, const ResourceClaim& claim, const AllocationResult& result,
                        const grant::NodeUnits& node, const UnhealthyTaint& taint) {
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

// With which LNC a device is used, and by what.
struct LncUse {
  int lnc = 0;
  std::string who;
  bool is_other_claim = false;
};

std::optional<int> lnc_of(const RequestShare& share, std::optional<int> node_lnc) {
  if (!share.computes()) return std::nullopt;
  return share.config.lnc ? share.config.lnc : node_lnc;
}

Error clash(int device, const LncUse& use, const std::string& request, int lnc) {
  return make_error(
      ErrorCode::failed_precondition,
      "neuron" + std::to_string(device) + " is used with logicalNeuronCore " + std::to_string(use.lnc) + " by " +
          use.who + ", and the request \"" + request + "\" requests it with " + std::to_string(lnc) +
          ": a device has one LNC value; use the same configuration for both, or request " +
          (use.is_other_claim ? "whole devices; retried automatically, succeeds once that claim is released"
                              : "cores of different devices"));
}

}  // namespace

Result<RequestConfig> config_for(const std::vector<OpaqueConfig>& configs, const std::string& request) {
  RequestConfig found;
  for (const bool from_class : {true, false}) {
    for (const OpaqueConfig& config : configs) {
      if (config.from_class != from_class) continue;
      const auto parsed = kube::parse_object(config.parameters, "parameters");
      const json& parameters = parsed ? *parsed : kube::member(json(), "");
      TRY_ASSIGN(const ConfigKind* kind, kind_of(parameters));
      TRY_ASSIGN(const int value, value_of(*kind, parameters));
      if (is_for(config, request)) found.*(kind->member) = value;
    }
  }
  return found;
}

Hardware ClaimPlan::held() const {
  Hardware hardware;
  for (const RequestShare& share : shares) {
    if (!share.admin_access) hardware.add(share.hardware);
  }
  return hardware;
}

Result<ClaimPlan> plan_of(const ResourceClaim& claim, const grant::NodeUnits& node, const std::string& pool,
                          const UnhealthyTaint& taint) {
  if (!claim.is_allocated || claim.results.empty()) {
    return fail(ErrorCode::failed_precondition,
                "the claim has no allocation by this driver; the scheduler allocates it for the next pod");
  }
  ClaimPlan plan;
  for (const AllocationResult& result : claim.results) {
    if (result.pool != pool) {
      return fail(ErrorCode::failed_precondition, "\"" + printable(result.device, 64) + "\" is of the pool \"" +
                                                      printable(result.pool, 64) + "\", and this node has \"" + pool +
                                                      "\"; delete the pod, so that a new one is scheduled");
    }
    TRY(add_result(plan, claim, result, node, taint));
  }
  return plan;
}

Result<void> check_known_health(const ResourceClaim& claim, const grant::NodeUnits& known,
                                const UnhealthyTaint& taint) {
  for (const AllocationResult& result : claim.results) {
    if (result.admin_access) continue;
    auto checked = check_health(known, result, taint);
    if (!checked && checked.error().code != ErrorCode::not_found) return checked;
  }
  return {};
}

Result<void> check_groups(const ClaimPlan& plan, const ClaimRecord* before, const grant::NodeUnits& node) {
  for (const PlannedDevice& one : plan.devices) {
    const bool is_known =
        before != nullptr && std::any_of(before->devices.begin(), before->devices.end(),
                                         [&](const PreparedDevice& known) { return known.device == one.device; });
    if (!is_known) TRY(check_offered(node, one.device));
  }
  return {};
}

bool is_same_allocation(const ClaimRecord& record, const ResourceClaim& claim) {
  std::set<std::tuple<std::string, std::string, std::string>> was, is;
  for (const PreparedDevice& device : record.devices) {
    for (const std::string& request : device.requests) was.emplace(request, device.pool, device.device);
  }
  for (const AllocationResult& result : claim.results) is.emplace(result.request, result.pool, result.device);
  return was == is;
}

std::optional<Error> conflict(const ClaimRecords& records, const std::string& uid, const Hardware& hardware) {
  for (const auto& [other, record] : records) {
    if (other == uid) continue;
    const auto both = overlap(hardware, record->held());
    if (!both) continue;
    return make_error(ErrorCode::failed_precondition,
                      *both + " is held by the claim " + record->shown() +
                          ", which is not released yet; retried automatically. If it persists, delete the pod, so that "
                          "a new one gets other devices");
  }
  return std::nullopt;
}

std::optional<Error> lnc_clash(const std::vector<RequestShare>& shares, std::optional<int> node_lnc,
                               const ClaimRecords& records, const std::string& uid) {
  std::map<int, LncUse> uses;  // by device
  for (const auto& [other, record] : records) {
    if (other == uid || !record->is_completed) continue;
    for (const RecordedRequest& request : record->requests) {
      const auto lnc = lnc_of(request.share, record->node_lnc);
      if (!lnc) continue;
      for (const HeldDevice& held : request.share.hardware.devices) {
        uses.try_emplace(held.device, LncUse{*lnc, "the claim " + record->shown(), true});
      }
    }
  }
  for (const RequestShare& share : shares) {
    const auto lnc = lnc_of(share, node_lnc);
    if (!lnc) continue;
    for (const HeldDevice& held : share.hardware.devices) {
      const auto& use =
          uses.try_emplace(held.device, LncUse{*lnc, "the request \"" + share.request + "\"", false}).first->second;
      if (use.lnc != *lnc) return clash(held.device, use, share.request, *lnc);
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
  return make_error(ErrorCode::failed_precondition, "the claim was prepared with cores numbered by LNC " +
                                                        std::to_string(*record.node_lnc) +
                                                        ", but they are now held as LNC " + std::to_string(*others) +
                                                        " numbers them; retried with the new numbers");
}

}  // namespace neuron::plugin::dra
