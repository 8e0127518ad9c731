#pragma once

#include <optional>
#include <string_view>

#include "agent/core/complete.h"
#include "agent/model/snapshot.h"

// Hardware that containers hold though no scan of this process has shown it, since it left before the agent started. It
// is listed as vanished, as what leaves later is, or as unread while the list it would be on was never read
// (agent/core/complete.h). Pure.
namespace neuron::holdings {

// Adds a device, or an interface by its RDMA name, to `held`. False: it is there already, or cannot be of this node and
// is not added: a device whose index the instance type does not have, or above 63 where the type is unknown; an
// interface with a name other than rdmap<bus>s<slot> (decimal, domain 0), which its address is taken from, or the 65th.
[[nodiscard]] bool note_held_device(core::SeenBefore& held, int index, const model::HostScan& host);
[[nodiscard]] bool note_held_efa(core::SeenBefore& held, std::string_view name);

// `snapshot` and, where they belong in it, the devices and interfaces of `held` that it lacks: vanished and unhealthy,
// or unread and unknown, completed from the tables. An interface that is there without a name gets its held one. `lnc`:
// the result has so many physical cores per logical one, whatever the snapshot says, so that core ids are read with it;
// nullopt = unchanged.
[[nodiscard]] model::Snapshot with_held(const model::Snapshot& snapshot, const core::SeenBefore& held,
                                        std::optional<int> lnc);

}  // namespace neuron::holdings
