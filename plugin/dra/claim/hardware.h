#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/resource_claim.h"
#include "plugin/kubelet/memory_gate.h"

// Hardware that a claim holds, whatever the devices of the pool are called: a device, its cores and its groups exclude
// each other. Pure.
namespace neuron::plugin::dra {

// Cores are places: place p of a device is its p-th physical core in the order in which the driver numbers logical ones
// before LNC joins them (docs/reference/driver.md#logical-cores), so logical core n has the places n*LNC … n*LNC+LNC-1.
// They stay what they are when LNC changes, and when the driver first says which physical core is behind which place.
struct HeldDevice {
  int device = 0;           // index
  std::vector<int> places;  // ascending, each once; empty = all of the device, however many it has
  friend bool operator==(const HeldDevice&, const HeldDevice&) = default;
};

struct Hardware {
  std::vector<HeldDevice> devices;  // ascending, each once
  std::vector<std::string> efas;    // RDMA names, ascending, each once

  [[nodiscard]] bool empty() const { return devices.empty() && efas.empty(); }
  void add(const Hardware& more);
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

// How cores are numbered that claims hold: with another LNC the same number is other hardware.
struct HeldNumbering {
  bool any = false;        // some claim that is prepared holds a device, or cores of one
  std::optional<int> lnc;  // of the node when it was prepared; nullopt: not known of any claim
};

// A part that both hold, as text: "neuron3", "core position 1 of neuron3", "interface rdmap16s25". nullopt: nothing.
[[nodiscard]] std::optional<std::string> overlap(const Hardware& one, const Hardware& other);

// The taint that the pool gives what is unhealthy; its value is the reason's code.
struct UnhealthyTaint {
  std::string key;
  std::string effect;  // "" = no taint is given, so none can be tolerated
};

// The hardware of this node behind the name of a pool device, as the scan of `node` shows it. The name is foreign text:
// others may have written slices under this driver's name.
// Errors: invalid_argument (not a name of this driver), not_found (nothing of that name is here), naming it.
[[nodiscard]] Result<Hardware> hardware_of(const grant::NodeUnits& node, const std::string& pool_device);

// Errors: not_found when it is the name of a group which this node does not offer as one, naming it: between its
// devices there need not be a link.
[[nodiscard]] Result<void> check_offered(const grant::NodeUnits& node, const std::string& pool_device);

// Errors: failed_precondition when some of the result's hardware is unhealthy, with reason and action, unless the
// result tolerates that; those of hardware_of().
[[nodiscard]] Result<void> check_health(const grant::NodeUnits& node, const AllocationResult& result,
                                        const UnhealthyTaint& taint);

// All cores of the hardware, whose leftover memory has to go before another container gets them.
[[nodiscard]] std::vector<MemoryGate::Core> cores_of(const grant::NodeUnits& node, const Hardware& hardware);
// The place behind a number in MemoryGate::Core::maybe_of.
[[nodiscard]] Hardware place_of(int number);

}  // namespace neuron::plugin::dra
