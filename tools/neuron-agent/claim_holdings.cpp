#include "tools/neuron-agent/claim_holdings.h"

#include <algorithm>
#include <utility>

#include "agent/core/logical_cores.h"
#include "plugin/dra/claim/claim_upkeep.h"

namespace neuron::agent {
namespace {

namespace dra = plugin::dra;
using holdings::Holding;

void sort_unique(std::vector<int>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Ids of the logical cores behind places of a device, or of all of it.
void add_cores(const grant::NodeUnits& node, const dra::HeldDevice& held, std::vector<int>& cores) {
  const model::NeuronDevice* const device = node.device(held.device);
  if (device == nullptr) return;
  const model::HostScan& host = node.snapshot().host;
  const std::vector<int> ids = core::core_ids_of(*device, host);
  if (held.places.empty()) {
    cores.insert(cores.end(), ids.begin(), ids.end());
    return;
  }
  const int lnc = host.lnc ? host.lnc->value : 1;
  for (const int place : held.places) {
    const int position = place / lnc;
    if (position >= 0 && position < static_cast<int>(ids.size()))
      cores.push_back(ids[static_cast<std::size_t>(position)]);
  }
}

// One holding of cores and one of interfaces, as agent/holdings/ledger.h has them of a claim.
void add_holdings(const grant::NodeUnits& node, const dra::Hardware& hardware, const Holding& holder,
                  std::vector<Holding>& all) {
  Holding cores = holder;
  Holding nics = holder;
  nics.resource = model::Resource::efa;
  for (const dra::HeldDevice& held : hardware.devices) {
    cores.devices.push_back(held.device);
    add_cores(node, held, cores.cores);
  }
  for (const std::string& name : hardware.efas) {
    if (const auto unit = node.unit_of(model::Resource::efa, name)) nics.units.push_back(*unit);
  }
  for (std::vector<int>* values : {&cores.cores, &cores.devices, &nics.units}) sort_unique(*values);
  cores.units = cores.resource == model::Resource::neuroncore ? cores.cores : cores.devices;
  if (!cores.devices.empty()) all.push_back(std::move(cores));
  if (!nics.units.empty()) all.push_back(std::move(nics));
}

std::string user_of(const dra::ClaimRecord& claim, const std::vector<model::Allocation>& listed) {
  const auto user =
      std::find_if(listed.begin(), listed.end(), [&](const model::Allocation& one) { return dra::is_of(one, claim); });
  return user == listed.end() ? "" : model::holder_name(*user);
}

}  // namespace

Result<std::vector<model::Allocation>> ListedClaims::seen(Result<std::vector<model::Allocation>> listed) {
  if (!listed) return listed;
  std::vector<model::Allocation> claims;
  std::copy_if(listed->begin(), listed->end(), std::back_inserter(claims),
               [](const model::Allocation& one) { return !one.claim.empty(); });
  const MutexLock lock(mutex_);
  claims_.swap(claims);
  return listed;
}

std::vector<model::Allocation> ListedClaims::claims() const {
  const MutexLock lock(mutex_);
  return claims_;
}

std::vector<Holding> holdings_of(const grant::NodeUnits& node, const dra::ClaimRecords& claims,
                                 const dra::PluginHolders& plugin_holders,
                                 const std::vector<model::Allocation>& listed) {
  std::vector<Holding> all;
  for (const auto& [uid, claim] : claims) {
    Holding holder;
    holder.resource = model::Resource::neuroncore;
    holder.holder = claim->shown();
    holder.shown_as = user_of(*claim, listed);
    holder.claim = claim->name.empty() ? uid : claim->name;
    add_holdings(node, claim->held(), holder, all);
  }
  for (const dra::PluginHolder& one : plugin_holders) {
    const auto resource = model::parse_resource(one.resource);
    if (!resource) continue;
    Holding holder;
    holder.resource = *resource;
    holder.holder = holder.shown_as = one.container;
    add_holdings(node, one.hardware, holder, all);
  }
  return all;
}

}  // namespace neuron::agent
