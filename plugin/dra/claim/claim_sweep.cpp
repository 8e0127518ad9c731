#include "plugin/dra/claim/claim_sweep.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "plugin/dra/claim/claim_cores.h"

namespace neuron::plugin::dra {
namespace {

constexpr int kSweepsWithoutName = 2;  // in a row: a pod that begins is listed by then

bool has_devices(const model::Allocation& allocation, const PreparedClaim& claim) {
  return std::all_of(claim.devices.begin(), claim.devices.end(), [&](const PreparedDevice& device) {
    return std::find(allocation.ids.begin(), allocation.ids.end(), device.device) != allocation.ids.end();
  });
}

}  // namespace

bool is_of(const model::Allocation& listed, const PreparedClaim& claim) {
  if (const std::size_t name = listed.cdi_id.find('='); name != std::string::npos) {
    return std::string_view(listed.cdi_id).substr(name + 1).starts_with(claim.uid + "-");
  }
  const bool has_name = !claim.name.empty() && listed.pod_namespace == claim.claim_namespace;
  return has_name && listed.claim == claim.name && has_devices(listed, claim);
}

ClaimSweep::ClaimSweep(std::string driver, std::string pool, Ports ports, ClaimStore& store, kube::Api& api,
                       const Clock& clock)
    : driver_(std::move(driver)),
      pool_(std::move(pool)),
      ports_(std::move(ports)),
      store_(store),
      reader_(api, driver_),
      clock_(clock) {}

bool ClaimSweep::is_listed(const PreparedClaim& claim, const std::vector<model::Allocation>& listed) const {
  return std::any_of(listed.begin(), listed.end(), [&](const model::Allocation& one) {
    if (one.claim.empty() || one.resource_name != driver_) return false;
    const bool may_be_it = claim.name.empty() && one.cdi_id.empty() && has_devices(one, claim);
    return may_be_it || is_of(one, claim);
  });
}

// Of a claim that was rebuilt from its CDI file, whose devices all have CDI ids, as the kubelet lists it.
void ClaimSweep::learn_name(const PreparedClaim& claim, const std::vector<model::Allocation>& listed) {
  for (const model::Allocation& one : listed) {
    if (one.claim.empty() || one.resource_name != driver_ || !is_of(one, claim)) continue;
    (void)store_.set_name(claim.uid, one.pod_namespace, one.claim);  // else the next sweep does
    return;
  }
}

bool ClaimSweep::is_gone(const PreparedClaim& claim) {
  if (claim.name.empty()) return ++unlisted_[claim.uid] >= kSweepsWithoutName;
  const auto found = reader_.read_claim(claim.claim_namespace, claim.name);
  if (!found) return found.error().code == ErrorCode::not_found;
  return found->uid != claim.uid || std::none_of(found->results.begin(), found->results.end(),
                                                 [&](const ClaimResult& result) { return result.pool == pool_; });
}

// Free: every core of it is known, and no process has memory there. Interfaces show nothing.
ClaimSweep::Evidence ClaimSweep::evidence(const grant::NodeUnits& node, const PreparedClaim& claim) const {
  const Hardware held = claim.held();
  bool is_known = !held.devices.empty() && held.efas.empty();
  for (const HeldDevice& device : held.devices) {
    const std::vector<MemoryGate::Core> cores = cores_of(node, {{device}, {}});
    is_known &= !cores.empty() && cores.size() >= device.places.size();
    for (const MemoryGate::Core& core : cores) {
      const auto bytes = ports_.memory_in_use(core.device, core.physical);
      if (bytes.value_or(0) > 0) return Evidence::in_use;
      is_known &= bytes.has_value();
    }
  }
  return is_known ? Evidence::free : Evidence::none;
}

bool ClaimSweep::is_unused(const grant::NodeUnits& node, const PreparedClaim& claim) {
  const Evidence found = evidence(node, claim);
  if (found != Evidence::none) {
    gone_since_.erase(claim.uid);
    return found == Evidence::free;
  }
  const SteadyTime now = clock_.now();
  return now - gone_since_.try_emplace(claim.uid, now).first->second >=
         claim.grace.value_or(kUnknownGrace) + kGraceMargin;
}

void ClaimSweep::forget(const std::string& uid) {
  unlisted_.erase(uid);
  gone_since_.erase(uid);
}

Result<std::vector<std::string>> ClaimSweep::sweep() {
  std::vector<std::string> released;
  const grant::NodeUnitsPtr node = ports_.node();
  TRY_ASSIGN(const ClaimStore::View view, store_.view());
  if (!node || view.claims.empty()) return released;
  TRY_ASSIGN(const auto listed, ports_.listed());
  const auto is_known = [&](const auto& one) { return view.claims.contains(one.first); };
  std::erase_if(unlisted_, std::not_fn(is_known));
  std::erase_if(gone_since_, std::not_fn(is_known));
  for (const auto& [uid, claim] : view.claims) {
    if (is_listed(*claim, listed)) {
      forget(uid);
      if (claim->name.empty()) learn_name(*claim, listed);
      continue;
    }
    if (!is_gone(*claim)) {
      gone_since_.erase(uid);
      continue;
    }
    if (!is_unused(*node, *claim)) continue;
    TRY_ASSIGN(const bool is_released, store_.release_if(claim));
    if (is_released) released.push_back(claim->shown());
  }
  return released;
}

}  // namespace neuron::plugin::dra
