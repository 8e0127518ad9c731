#pragma once

#include <string>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "agent/holdings/ledger.h"
#include "agent/model/allocation.h"
#include "plugin/dra/claim/plugin_holders.h"
#include "plugin/dra/claim/record_store.h"

namespace neuron::agent {

// Which containers use claims, as the kubelet listed them for another reason: asking it has side effects
// (docs/reference/kubelet.md#podresources), so nobody asks for this alone. Thread-safe.
class ListedClaims {
 public:
  // Keeps what is about claims, and gives back what it was given.
  [[nodiscard]] Result<std::vector<model::Allocation>> seen(Result<std::vector<model::Allocation>> listed)
      EXCLUDES(mutex_);
  [[nodiscard]] std::vector<model::Allocation> claims() const EXCLUDES(mutex_);  // empty before the first list

 private:
  mutable Mutex mutex_;
  std::vector<model::Allocation> claims_ GUARDED_BY(mutex_);
};

// Who holds what on a node that serves claims: prepared claims, with the first container that uses each where `listed`
// says, and what containers from before it changed over still have of the device plugin. Pure.
[[nodiscard]] std::vector<holdings::Holding> holdings_of(const grant::NodeUnits& node,
                                                         const plugin::dra::ClaimRecords& claims,
                                                         const plugin::dra::PluginHolders& plugin_holders,
                                                         const std::vector<model::Allocation>& listed);

}  // namespace neuron::agent
