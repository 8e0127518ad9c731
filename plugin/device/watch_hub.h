#pragma once

#include "plugin/device/unit_list.h"
#include "plugin/kubelet/list_hub.h"

namespace neuron::plugin {

// Hands the newest list of one resource to every open ListAndWatch.
using WatchHub = ListHub<UnitList>;
using WatchSink = ListSink<UnitList>;

}  // namespace neuron::plugin
