#pragma once

#include <optional>
#include <string_view>

#include "agent/core/vanished.h"
#include "agent/model/snapshot.h"

// Hardware that containers hold though no scan of this process has shown it: it left before the agent started. It is
// listed like what left later, see vanished.h. Pure.
namespace neuron::holdings {

// Notes a device, or an interface by its RDMA name, as held. False: noted before, or it makes no sense on this node and
// is left out. Devices: an index that the instance type does not have, or above 63 where the type is unknown.
// Interfaces: a name other than rdmap<bus>s<slot> (decimal, domain 0), from which its address follows; more than 64.
[[nodiscard]] bool note_held_device(core::SeenBefore& held, int index, const model::HostScan& host);
[[nodiscard]] bool note_held_efa(core::SeenBefore& held, std::string_view name);

// `snapshot` with what is held and not there in its place, vanished and unhealthy, completed from the tables; an
// interface without a name gets the held one back. `lnc`: core ids are to be read with so many physical cores per
// logical one, whatever the snapshot says; nullopt = as it says.
[[nodiscard]] model::Snapshot with_held(const model::Snapshot& snapshot, const core::SeenBefore& held,
                                        std::optional<int> lnc);

}  // namespace neuron::holdings
