#pragma once

#include <functional>

#include "agent/model/scan_part.h"

namespace neuron::host {

// Called by the scanner just before it reads a part, on the scanning thread; false: it leaves the part out. The call
// also says that the part before it has been read, so that another thread knows what is being read and since when.
using MayRead = std::function<bool(const model::ScanPart&)>;

}  // namespace neuron::host
