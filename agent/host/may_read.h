#pragma once

#include <functional>

#include "agent/model/scan_part.h"

namespace neuron::host {

// Asked before each part of a scan, on the scanning thread: false leaves the part out. Whoever asks begins that part,
// which ends the one before, so that another thread can tell what is being read and since when.
using MayRead = std::function<bool(const model::ScanPart&)>;

}  // namespace neuron::host
