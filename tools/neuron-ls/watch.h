#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "agent/base/background_reader.h"

namespace neuron::ls {

// What one look at the node gave to show. Passive data.
struct Shown {
  std::string text;       // "" when there is nothing to list
  std::string complaint;  // for stderr, with line ends: why there is nothing, or what is unknown
};

// Where and how a watch shows what it sees. Passive data.
struct WatchPlan {
  std::chrono::milliseconds interval{2000};
  bool on_terminal = false;   // redraw in place; else one text after another
  bool blank_between = true;  // a blank line between two texts that go into a pipe
};

// Looks again and again and shows it, until SIGINT, SIGTERM or SIGHUP, or until the reader of stdout is gone. Returns
// the exit status: 0 after these, 1 when the first look had nothing to list or stdout could not be written, with the
// reason on stderr. SIGPIPE is ignored from then on. On a terminal the last text stays when the screen is given back.
// The three signals, SIGTSTP and SIGWINCH must be blocked by the caller before any thread exists (block_watch_signals).
// A look under way is waited for, half a second at most; one that hangs does not return, but the process ends.
[[nodiscard]] int watch(const WatchPlan& plan, std::function<Shown()> look);

// Blocks them for the calling thread and those it starts.
void block_watch_signals();

}  // namespace neuron::ls
