#pragma once

#include <chrono>

#include "agent/base/result.h"
#include "tools/kubectl-neuron/options.h"
#include "tools/kubectl-neuron/top_screen.h"

namespace neuron::fleet {

// Shows the fleet on the terminal, read anew every `interval`, until the user presses q or a signal ends it. The first
// reading is done before the screen appears. Errors: as documents_of and screen::run_live. Before any other thread.
[[nodiscard]] Result<void> show_top(const Options& options, std::chrono::milliseconds interval, TopState state);

}  // namespace neuron::fleet
