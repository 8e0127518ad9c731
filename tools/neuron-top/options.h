#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "agent/base/result.h"
#include "agent/core/hardware.h"
#include "tools/neuron-top/collector.h"
#include "tools/render/canvas.h"
#include "tools/screen/terminal.h"

namespace neuron::top {

// Passive data. Flag over environment (NEURON_TOP_...) over default.
struct Options {
  bool once = false;                         // --once: print, no screen
  bool json = false;                         // --json: one object per line and interval; wins over --once
  bool no_wait = false;                      // --no-wait: one sample only, rates stay unknown
  bool with_pods = false;                    // --pods
  int count = 0;                             // --count: pictures or objects; 0 = one picture, objects without end
  std::chrono::milliseconds interval{1000};  // --interval, 200 ms to one hour
  std::string root = "/";                    // --root: a directory or an archive
  std::string kubelet_dir;                   // --kubelet-dir; "" = var/lib/kubelet below the root
  std::string dra_driver_name{core::kDefaultDriverName};  // --dra-driver-name: whose claims --pods shows
};

// Either options or, for --help and --version, the text to print on stdout before leaving with success.
using Request = std::variant<Options, std::string>;

// Errors: invalid_argument with a message for the user.
[[nodiscard]] Result<Request> parse_options(int argc, const char* const* argv);

// "1", "0.5" (seconds), "500ms", "2s", "1m". 0 stands for --no-wait. Errors: invalid_argument (no number, below 200 ms,
// above an hour).
[[nodiscard]] Result<std::chrono::milliseconds> parse_interval(std::string_view text);

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
