#pragma once

#include "tools/neuron-gather/capture.h"

namespace neuron::gather {

// Replaces what tells one machine from another of its kind: serial numbers of the chips, instance id, ids of
// UltraServers and reservations, GUIDs and GIDs of EFA interfaces (they hold the MAC address). Consistently: equal ones
// stay equal, different ones different, each in its own format, wherever they stand in the capture. The new ones count
// up in the order of paths, so they tell nothing of the old ones, and doing it twice changes nothing. Zeros and texts
// in no known format stay. Pure.
void anonymise(Capture& capture);

}  // namespace neuron::gather
