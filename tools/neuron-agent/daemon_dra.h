#pragma once

#include "agent/base/fd.h"
#include "tools/neuron-agent/daemon.h"
#include "tools/neuron-agent/options.h"

namespace neuron::agent {

// run_daemon() for --mode dra: claims instead of a device plugin (docs/adr/0011-dra.md).
[[nodiscard]] ExitCode run_dra_daemon(const Options& options, const Fd& signals);

// --once in that mode: one scan; prints on stdout, as JSON, the ResourceSlices that would be published.
[[nodiscard]] ExitCode print_slices_once(const Options& options);

}  // namespace neuron::agent
