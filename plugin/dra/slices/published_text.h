#pragma once

#include <string>

#include "plugin/dra/slices/slice_layout.h"
#include "plugin/dra/slices/slice_sync.h"

namespace neuron::plugin::dra {

// What would be published, without asking anybody: a List of ResourceSlices that `kubectl apply -f` takes. Without the
// node's uid they have no owner. Pure.
[[nodiscard]] std::string published_text(const Layout& layout, const PoolIdentity& identity);

}  // namespace neuron::plugin::dra
