#pragma once

#include "plugin/device/events.h"
#include "plugin/kubelet/event_queue.h"

namespace neuron::plugin {

using EventQueue = EventQueueOf<Event>;

}  // namespace neuron::plugin
