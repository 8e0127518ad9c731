#pragma once

#include <chrono>

#include "agent/base/result.h"
#include "tools/neuron-top/moment.h"
#include "tools/neuron-top/terminal.h"
#include "tools/render/style.h"

namespace neuron::top {

struct LiveOptions {
  std::chrono::milliseconds interval{1000};
  render::Charset charset = render::Charset::utf8;
  std::chrono::milliseconds stale_after{3000};  // and three intervals: then a sample that does not come is told
};

// Shows the machine on the terminal until the user presses q or `signals`, a signalfd of SIGINT, SIGTERM, SIGHUP,
// SIGWINCH, SIGTSTP and SIGCONT (all blocked), says so. One thread that waits for keys, a timer, signals and samples,
// and reads nothing itself. Errors: internal (no timer, poll failed).
[[nodiscard]] Result<void> run_live(const LiveOptions& options, Terminal& terminal, Sampler& sampler, int signals);

}  // namespace neuron::top
