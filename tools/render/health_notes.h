#pragma once

#include <string>

#include "tools/render/node_report.h"
#include "tools/render/style.h"

namespace neuron::render {

// What `neuron-ls --health` says below its table: devices and interfaces that the instance type has but the machine
// does not show, every verdict other than healthy with what was seen and what to do, and what could not be read. One
// sentence when all is well. Every line ends in '\n'. Pure, any thread.
[[nodiscard]] std::string health_notes(const NodeReport& report, ColourDepth colour = ColourDepth::none);

}  // namespace neuron::render
