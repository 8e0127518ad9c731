// Hardware held by claims of dynamic resource allocation, on a node that changed to the device plugin while pods with
// claims continued: the kubelet's device manager considers it free.
#include <algorithm>
#include <utility>

#include "agent/core/pool_names.h"
#include "agent/holdings/held.h"
#include "plugin/device/allocations.h"

namespace neuron::plugin {
namespace {

void add(std::vector<int>& all, const std::vector<int>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void sort_unique(std::vector<int>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

bool Allocations::learn_unseen_claim(const model::Allocation& shown) {
  if (shown.resource_name != claim_driver_) return false;
  const model::HostScan& host = newest_->snapshot().host;
  bool unseen = false;
  for (const std::string& id : shown.ids) {
    const auto name = core::parse_pool_name(id);
    if (!name) continue;
    for (const int device : core::named_devices(*name, host)) {
      if (node_->device(device) == nullptr) unseen = holdings::note_held_device(held_unseen_, device, host) || unseen;
    }
    const auto* efa = std::get_if<core::EfaName>(&*name);
    if (efa == nullptr || !core::hardware_of(*name, node_->snapshot().host).efas.empty()) continue;
    unseen = holdings::note_held_efa(held_unseen_, efa->label) || unseen;
  }
  return unseen;
}

std::vector<holdings::Holding> Allocations::claims_to_holdings(const std::vector<model::Allocation>& shown) const {
  std::vector<holdings::Holding> holdings;
  for (const model::Allocation& one : shown) {
    if (one.resource_name != claim_driver_) continue;
    holdings::Holding cores;
    cores.resource = model::Resource::neuroncore;
    cores.holder = model::holder_of(one);
    cores.shown_as = model::holder_name(one);
    cores.claim = one.claim;
    holdings::Holding nics = cores;
    nics.resource = model::Resource::efa;
    for (const std::string& id : one.ids) {
      const auto name = core::parse_pool_name(id);
      if (!name) continue;
      const core::PoolHardware hardware = core::hardware_of(*name, node_->snapshot().host);
      add(cores.cores, hardware.cores);
      add(cores.devices, hardware.devices);
      for (const std::string& efa : hardware.efas) {
        if (const auto unit = node_->unit_of(model::Resource::efa, efa)) nics.units.push_back(*unit);
      }
    }
    for (std::vector<int>* values : {&cores.cores, &cores.devices, &nics.units}) sort_unique(*values);
    cores.units = cores.cores;
    if (!cores.units.empty()) holdings.push_back(std::move(cores));
    if (!nics.units.empty()) holdings.push_back(std::move(nics));
  }
  return holdings;
}

std::vector<int> Allocations::claimed_efas() const {
  std::vector<int> efas;
  for (const holdings::Holding& holding : ledger_.claimed()) {
    if (holding.resource == model::Resource::efa) add(efas, holding.units);
  }
  sort_unique(efas);
  return efas;
}

}  // namespace neuron::plugin
