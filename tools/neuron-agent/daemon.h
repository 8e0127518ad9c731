#pragma once

#include <string>

#include "agent/base/fd.h"
#include "plugin/daemon/node_daemon.h"
#include "tools/neuron-agent/options.h"

// The composition roots of `neuron-agent run`, one for each mode. `options.root` is a directory; an archive was
// unpacked before.
namespace neuron::agent {

using plugin::ExitCode;

// Builds every part of the device plugin, wires it, and runs until `signals` (plugin::block_signals) has SIGTERM or
// SIGINT.
[[nodiscard]] ExitCode run_device_plugin(const Options& options, const Fd& signals);
// Runs the driver of --mode dra until such a signal (docs/adr/0011-dra.md).
[[nodiscard]] ExitCode run_dra_driver(const Options& options, const Fd& signals);

// --once: one scan, printed on stdout: the resources that would be advertised, or the ResourceSlices as JSON.
[[nodiscard]] ExitCode print_resources_once(const Options& options);
[[nodiscard]] ExitCode print_slices_once(const Options& options);

// For both: logs the effective options, with warnings.
void log_start(const Options& options);
// Scans for --once, and logs warnings; null with an error in the log when the root cannot be opened.
[[nodiscard]] model::SnapshotPtr scan_for_once(const Options& options, Workers& workers);

}  // namespace neuron::agent
