#pragma once

#include <string>

#include "agent/report/node_report.h"
#include "tools/render/style.h"

// A node's report as CSV, picture and notes; its JSON is agent/report. Pure functions.
namespace neuron::render {

using report::JsonLayout;
using report::near_devices;
using report::near_efa_names;
using report::node_report_json;
using report::NodeReport;
using report::only_devices;
using report::pods_on_device;
using report::pods_on_efa;
using report::PodUse;

// One line of column names and one line per device, as RFC 4180 has it but with '\n' at line ends; the columns are in
// docs/neuron-ls.md. Unknown values are empty; lists in a cell are joined by blanks.
[[nodiscard]] std::string node_report_csv(const NodeReport& report);

// One SVG 1.1 document, 1200 pixels wide, complete with line end. Devices where they are linked, their logical cores,
// the NUMA nodes and PCI parents around them, interfaces beside the devices they are nearest to; holders; findings, by
// shape and hatch as well as by colour; a legend. Light or dark as the reader prefers. Without scripts and references
// to other files. The numbers are the host's. Bounded for any report; the same for the same report.
[[nodiscard]] std::string node_svg(const NodeReport& report);

// The text below the table of `neuron-ls --health`: devices and interfaces that the instance type has but the machine
// does not show, every verdict other than healthy with its reason and advice, and read problems. One sentence when all
// are healthy. Every line ends in '\n'.
[[nodiscard]] std::string health_notes(const NodeReport& report, ColourDepth colour = ColourDepth::none);

}  // namespace neuron::render
