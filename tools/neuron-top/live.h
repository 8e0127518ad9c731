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
  std::chrono::milliseconds stale_after{3000};  // without a sample for this and for three intervals: shown as stale
};

// Shows the machine on the terminal until the user presses q or SIGINT, SIGTERM or SIGHUP comes. `signals`: a signalfd
// of these and of SIGWINCH, SIGTSTP and SIGCONT, which it acts on; all blocked. Waits for keys, a timer, signals and
// samples on the calling thread, and never reads the machine itself. Errors: internal (no timer, poll failed).
[[nodiscard]] Result<void> run_live(const LiveOptions& options, Terminal& terminal, Sampler& sampler, int signals);

}  // namespace neuron::top
