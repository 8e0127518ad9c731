#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/allocator/allocator.h"
#include "agent/base/clock.h"
#include "agent/base/list_hub.h"
#include "agent/base/result.h"
#include "agent/core/hardware.h"
#include "agent/core/offer_policy.h"
#include "agent/grant/grant.h"
#include "agent/holdings/holding.h"
#include "agent/model/allocation.h"
#include "agent/model/resource.h"
#include "plugin/device/ledger.h"
#include "plugin/placement/placed_pod.h"

// The units of a resource between the kubelet and the node: what containers hold, the list that the kubelet is shown,
// and the choice among units it offers.
namespace neuron::plugin {

// Allocations of the kubelet in the node's own terms. Ids that the node does not have are skipped. Pure.

// Ascending, unique.
[[nodiscard]] std::vector<int> known_units(const grant::NodeUnits& node, model::Resource resource,
                                           const std::vector<std::string>& ids);

// By no container, since never. `units`: ascending.
[[nodiscard]] Holding holding_of(const grant::NodeUnits& node, model::Resource resource, std::vector<int> units);

// By containers, through the device plugin.
[[nodiscard]] std::vector<Holding> to_holdings(const grant::NodeUnits& node,
                                               const std::vector<model::Allocation>& shown, SteadyTime since);

// Devices of a claim that are of this node: of `driver`, and of any other driver whose devices all have the names that
// ours gives, as that is ours under an earlier name.
[[nodiscard]] std::vector<core::PoolName> claimed_names(const model::Allocation& claim, std::string_view driver);

// By claims (claimed_names): hardware that the kubelet's device manager takes for free. Pods with claims outlast a
// change of the node from claims to the device plugin.
[[nodiscard]] std::vector<Holding> claims_to_holdings(const grant::NodeUnits& node,
                                                      const std::vector<model::Allocation>& shown,
                                                      std::string_view driver);

// One unit of a resource as watchers see it.
struct UnitState {
  std::string id;
  bool healthy = true;
  std::vector<int> numa_nodes;  // empty: unknown; never contains -1
  friend bool operator==(const UnitState&, const UnitState&) = default;
};

using UnitList = std::vector<UnitState>;
using UnitListPtr = std::shared_ptr<const UnitList>;
using WatchHub = ListHub<UnitList>;  // to every open ListAndWatch of one resource

// Use of units, which a list shows beside the node's inventory. All ascending.
struct UnitUse {
  std::vector<int> blocked_cores;    // held through another resource: not to be given through this one
  std::vector<int> held;             // units that containers hold through this very resource
  std::vector<int> blocked_units{};  // units that are not to be given, whatever their cores: interfaces held by claims
};

// The facts of one unit that its place in the list follows from.
struct UnitFacts {
  int unit = 0;
  bool offered = false;  // under this name
  bool held = false;     // through this very resource
  bool blocked = false;  // it, or one of its cores
  bool broken = false;   // unhealthy
  [[nodiscard]] bool is_listed() const { return offered || held; }
};

// The facts of every unit that the node has of the resource, ascending. Empty when this agent does not serve the
// resource at all (OfferPolicy::serves): another plugin may.
[[nodiscard]] std::vector<UnitFacts> unit_facts(const grant::NodeUnits& node, model::Resource resource,
                                                const core::OfferPolicy& offer, const UnitUse& use);

// The list a resource shows the kubelet: every unit that `offer` has under this name, Unhealthy when it is broken or
// blocked. Hardware that fails or vanishes is never dropped. A device of a split node that is not offered under this
// name is absent, so that the capacity is right too, except for what is held: the kubelet crashes on a device that
// leaves while it is allocated, and kills a pod whose device it finds Unhealthy when it restarts. Empty: the resource
// is not to be registered.
[[nodiscard]] UnitList make_unit_list(const grant::NodeUnits& node, model::Resource resource,
                                      const core::OfferPolicy& offer, const UnitUse& use);

// Chooses units for GetPreferredAllocation, by the allocator and by what it remembers of lists and answers. Not
// synchronised: Allocations locks.
class UnitChooser {
 public:
  struct Basis {
    const grant::NodeUnits& node;
    const Ledger& ledger;
    const core::OfferPolicy& offer;
    CheckpointVersion version = 0;  // of the admission that asks
    SteadyTime now{};
    [[nodiscard]] bool is_offered(model::Resource resource, int unit) const {
      return offer.offers(resource, node.device_of(resource, unit));
    }
    [[nodiscard]] bool is_broken(model::Resource resource, int unit) const {
      return node.health_of(resource, unit).state == model::HealthState::unhealthy;
    }
  };

  // `size` units out of `available` whenever that is possible, with `must_include`, which is part of it. Both
  // ascending.
  [[nodiscard]] allocator::Choice choose(const Basis& basis, model::Resource resource,
                                         const std::vector<int>& available, const std::vector<int>& must_include,
                                         int size) const;

  // The units of a placement by others, where exactly these can be given: ascending. Errors: failed_precondition, with
  // the reason, which names one id. The rest as for choose().
  [[nodiscard]] Result<std::vector<int>> placed(const Basis& basis, model::Resource resource,
                                                const std::vector<int>& available, const std::vector<int>& must_include,
                                                int size, const PlacedIds& placement) const;

  // `list` was sent to the kubelet, which gives no container the units that it shows Unhealthy.
  void note_published(const grant::NodeUnits& node, model::Resource resource, const UnitList& list);
  // `given` is about to be recorded. Remembers the sizes of a container that has cores and interfaces: the next one
  // like it may ask for the interfaces first.
  void note_given(const Basis& basis, const Holding& given);

 private:
  void add_hints(const Basis& basis, model::Resource resource, allocator::ChooseRequest& request) const;

  std::map<model::Resource, std::vector<int>> withheld_;  // devices shown Unhealthy in the newest lists
  // By number of EFAs of a container: on how many devices such containers were, the latest first, each once.
  std::map<std::size_t, std::vector<int>> sizes_beside_;
};

}  // namespace neuron::plugin
