#pragma once

#include <optional>
#include <string_view>

#include "agent/core/complete.h"
#include "agent/model/snapshot.h"

// Hardware that containers hold and no scan of this process has shown, since it left before the agent started. It is
// listed as vanished, like hardware that leaves later, or as unread while its list was never read. Pure.
namespace neuron::holdings {

// Adds a device, or an interface by its RDMA name, to `held`. False: it is in there, or is refused since it cannot be
// of this node: a device index that the instance type lacks, or above 63 where the type is unknown; an interface name
// other than rdmap<bus>s<slot> (decimal, domain 0), which gives the address, or the 65th interface.
[[nodiscard]] bool note_held_device(core::SeenBefore& held, int index, const model::HostScan& host);
[[nodiscard]] bool note_held_efa(core::SeenBefore& held, std::string_view name);

// `snapshot` with the hardware of `held` that it lacks (health::with_held), and with `lnc` physical cores per logical
// one instead of the snapshot's number, by which core ids are read; nullopt = unchanged.
[[nodiscard]] model::Snapshot with_held(const model::Snapshot& snapshot, const core::SeenBefore& held,
                                        std::optional<int> lnc);

}  // namespace neuron::holdings
