#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/render/node_view.h"
#include "tools/render/style.h"

// The tables of the official neuron-ls (docs/reference/official-tools.md#neuron-ls-columns), byte for byte. Pure
// functions, any thread.
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
  // Ours, never among the official ones:
  health,       // "healthy", "degraded", "unhealthy", "unknown"
  nearest_efa,  // "rdmap16s25"; "-" when there is none
  pod,          // "default/train-0"; "3 pods"; "-" for nobody; "NA" when the kubelet could not be asked
};

// Columns of the default view: `connected` when any device has neighbours, the process columns when any process is
// attached, and `command` only when one could be resolved.
[[nodiscard]] std::vector<Column> default_columns(const NodeView& view);

// Columns of the short table above the topology drawing.
[[nodiscard]] std::vector<Column> topology_columns(const NodeView& view);

// "instance-type: …", "instance-id: …", "logical-neuroncore-config: …": one line each for what is known.
[[nodiscard]] std::string header_lines(const NodeView& view);

// green, yellow or red for a text of the health column.
[[nodiscard]] Role role_of_health(std::string_view state);

// One group of rows per device: a row per process when a process column is asked for, else one row. Device cells stand
// in the first row of a group only. Marked neighbours get a star, and a line below the table says what it means. Colour
// marks the health column and changes no width.
[[nodiscard]] std::string device_table(const NodeView& view, const std::vector<Column>& columns,
                                       ColourDepth colour = ColourDepth::none);

}  // namespace neuron::render
