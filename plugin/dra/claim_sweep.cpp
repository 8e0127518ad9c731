#include "plugin/dra/claim_sweep.h"

#include <algorithm>
#include <utility>

#include "plugin/dra/claim_cores.h"

namespace neuron::plugin::dra {
namespace {

constexpr int kSweepsWithoutName = 2;  // in a row: a pod that begins is listed by then

bool has_devices(const model::Allocation& allocation, const PreparedClaim& claim) {
  return std::all_of(claim.devices.begin(), claim.devices.end(), [&](const PreparedDevice& device) {
    return std::find(allocation.ids.begin(), allocation.ids.end(), device.device) != allocation.ids.end();
  });
}

}  // namespace

ClaimSweep::ClaimSweep(std::string driver, std::string pool, Ports ports, ClaimStore& store, kube::Api& api)
    : driver_(std::move(driver)),
      pool_(std::move(pool)),
      ports_(std::move(ports)),
      store_(store),
      reader_(api, driver_) {}

bool ClaimSweep::is_listed(const PreparedClaim& claim, const std::vector<model::Allocation>& listed) const {
  return std::any_of(listed.begin(), listed.end(), [&](const model::Allocation& one) {
    if (one.claim.empty() || one.resource_name != driver_) return false;
    if (claim.name.empty()) return has_devices(one, claim);
    return one.pod_namespace == claim.claim_namespace && one.claim == claim.name;
  });
}

// A claim that was rebuilt of its CDI file is known by its devices: nobody else is listed with them.
void ClaimSweep::learn_name(const PreparedClaim& claim, const std::vector<model::Allocation>& listed) {
  for (const model::Allocation& one : listed) {
    if (one.claim.empty() || one.resource_name != driver_ || !has_devices(one, claim)) continue;
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

bool ClaimSweep::has_memory(const grant::NodeUnits& node, const PreparedClaim& claim) const {
  const std::vector<MemoryGate::Core> cores = cores_of(node, claim.held());
  return std::any_of(cores.begin(), cores.end(), [&](const MemoryGate::Core& core) {
    return ports_.memory_in_use(core.device, core.physical).value_or(0) > 0;
  });
}

Result<std::vector<std::string>> ClaimSweep::sweep() {
  std::vector<std::string> forgotten;
  const grant::NodeUnitsPtr node = ports_.node();
  TRY_ASSIGN(const ClaimStore::View view, store_.view());
  if (!node || view.claims.empty()) return forgotten;
  TRY_ASSIGN(const auto listed, ports_.listed());
  std::erase_if(unlisted_, [&](const auto& one) { return !view.claims.contains(one.first); });
  for (const auto& [uid, claim] : view.claims) {
    if (is_listed(*claim, listed)) {
      unlisted_.erase(uid);
      if (claim->name.empty()) learn_name(*claim, listed);
      continue;
    }
    if (!is_gone(*claim) || has_memory(*node, *claim)) continue;
    TRY_ASSIGN(const bool is_released, store_.release_if(claim));
    if (is_released) forgotten.push_back(claim->shown());
  }
  return forgotten;
}

}  // namespace neuron::plugin::dra
