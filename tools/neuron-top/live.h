#pragma once

#include <chrono>

#include "agent/base/result.h"
#include "tools/neuron-top/collector.h"
#include "tools/render/canvas.h"
#include "tools/screen/terminal.h"

namespace neuron::top {

struct LiveOptions {
  std::chrono::milliseconds interval{1000};
  render::Charset charset = render::Charset::utf8;
  std::chrono::milliseconds stale_after{3000};  // without a sample for this and for three intervals: shown as stale
};

// Shows the machine on the terminal until the user presses q or a signal ends it (screen::run_live, with its `signals`
// and errors). Never reads the machine itself.
[[nodiscard]] Result<void> run_live(const LiveOptions& options, screen::Terminal& terminal, Sampler& sampler,
                                    int signals);

}  // namespace neuron::top
