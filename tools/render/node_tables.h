#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/render/node_report.h"
#include "tools/render/node_view.h"
#include "tools/render/style.h"

// The tables of neuron-ls. Those of devices with official columns only are the official tool's
// (docs/reference/official-tools.md#neuron-ls-columns), byte for byte. Pure functions, any thread.
namespace neuron::render {

enum class Column {
  device,
  cores,     // number of logical cores
  core_ids,  // "4-7"; ids that do not follow each other "0-1,4"
  memory,    // "32 GB", the value being GiB
  connected,
  bdf,        // "0000:10:1b.0"
  short_bdf,  // "10:1b.0"; the full form in a PCI domain other than 0
  pid,
  command,
  affinity,  // "0-31,64-95"
  numa_node,
  runtime_version,
  // Not among the official ones:
  health,       // "healthy", "degraded", "unhealthy", "unknown"
  nearest_efa,  // "rdmap16s25"; "-" when there is none
  pod,          // "default/train-0"; "3 pods"; "-" without a holder; "NA" when the kubelet could not be asked
};

// Columns of the default view: `connected` when any device has neighbours, the process columns when any process is
// attached, and `command` only when one could be resolved.
[[nodiscard]] std::vector<Column> default_columns(const NodeView& view);

// Columns of the short table above the topology drawing.
[[nodiscard]] std::vector<Column> topology_columns(const NodeView& view);

// "instance-type: …", "instance-id: …", "logical-neuroncore-config: …": a line for each value that is known.
[[nodiscard]] std::string header_lines(const NodeView& view);

// One group of rows per device: a row per process when a process column is asked for, else one row. Device cells stand
// in the first row of a group only. Marked neighbours get a star, and a line below the table explains it. Colour marks
// the health column and changes no width.
[[nodiscard]] std::string device_table(const NodeView& view, const std::vector<Column>& columns,
                                       ColourDepth colour = ColourDepth::none);

// The EFA interfaces of a node in the style of the device table: name, verbs device, PCI address, NUMA node, peer
// memory support, nearest devices; health where it was assessed, pods where the kubelet answered. "NA" is unknown, "-"
// none. A sentence instead of a table when there is no interface.
[[nodiscard]] std::string efa_table(const NodeReport& report, ColourDepth colour = ColourDepth::none);

// One row per container that holds hardware: namespace, pod, container, claim where any has one, devices, core ids, EFA
// interfaces. A sentence when no container holds any; "" when the kubelet was not asked or did not answer.
[[nodiscard]] std::string pod_table(const NodeReport& report);

}  // namespace neuron::render
