#pragma once

#include <string>

#include "tools/render/node_report.h"

namespace neuron::render {

// The node drawn: one SVG 1.1 document, 1200 pixels wide, complete with line end. Devices where they are linked, their
// logical cores, the NUMA nodes and PCI parents around them, interfaces beside the devices they are nearest to; who
// holds what; what is ill, by shape and hatch as well as by colour; a legend. Light or dark as the reader prefers.
// Nothing in it is fetched or runs. The numbers are the host's. Bounded for any report; the same for the same report.
// Pure.
[[nodiscard]] std::string node_svg(const NodeReport& report);

}  // namespace neuron::render
