#pragma once

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "tools/neuron-agent/options.h"

namespace neuron::agent {

// Exit codes of `neuron-agent run`, as its man page lists them.
enum class ExitCode { ok = 0, failed = 1, usage = 2, other_agent = 3, dead_mount = 4 };

// Blocks SIGTERM, SIGINT and SIGHUP for the whole process and gives the descriptor to read them from, so that no code
// runs in a signal context. Call it from main before any other thread exists, the logger's included.
[[nodiscard]] Result<Fd> block_signals();

// The composition root: builds every real thing, wires it, runs until `signals` (block_signals) says SIGTERM or SIGINT.
// `options.root` is a directory; an archive was unpacked before.
[[nodiscard]] ExitCode run_daemon(const Options& options, const Fd& signals);

// --once: one scan; prints on stdout what each resource would advertise.
[[nodiscard]] ExitCode print_once(const Options& options);

}  // namespace neuron::agent
