#pragma once

#include "agent/config/options.h"

namespace neuron::daemon {

// Exit codes of `neuron-agent run`, as its man page lists them.
enum class ExitCode { ok = 0, failed = 1, usage = 2, other_agent = 3 };

// The composition root: builds every real thing, wires it, runs until SIGTERM or SIGINT. Blocks these signals and SIGHUP
// for the whole process, so call it from main before any other thread exists.
[[nodiscard]] ExitCode run_daemon(const config::Options& options);

// --once: one scan; prints on stdout what each resource would advertise.
[[nodiscard]] ExitCode print_once(const config::Options& options);

}  // namespace neuron::daemon
