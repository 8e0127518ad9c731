#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "agent/base/workers.h"

namespace neuron::ls {

// One listing of the node. Passive data.
struct Shown {
  std::string text;       // "" when there is nothing to list
  std::string complaint;  // for stderr, with line ends: why there is nothing, or what is unknown
};

// Interval, place and form of a watch's listings. Passive data.
struct WatchPlan {
  std::chrono::milliseconds interval{2000};
  bool on_terminal = false;   // redraw in place; else one text after another
  bool blank_between = true;  // a blank line between two texts that go into a pipe
};

// Calls `list` at every interval, in a thread of its own, and prints the result, until SIGINT, SIGTERM or SIGHUP, or
// until the reader of stdout is gone. Returns the exit status: 0 after these, 1 when the first listing was empty or
// stdout could not be written, with the reason on stderr. SIGPIPE is ignored from then on. On a terminal the last text
// stays when the screen is given back. The three signals, SIGTSTP and SIGWINCH must be blocked by the caller before any
// thread exists (block_watch_signals). At the end a call of `list` under way is waited for, half a second at most; when
// it hangs, the process ends without returning.
[[nodiscard]] int watch(const WatchPlan& plan, std::function<Shown()> list);

// Blocks them for the calling thread and those it starts.
void block_watch_signals();

// Enters the alternate screen, hides the cursor, cuts long lines at the right edge; and back (ECMA-48 and xterm).
inline constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l";
inline constexpr std::string_view kLeaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l";

// The text that redraws a terminal in place, without flicker: `status` in the first line, then as many lines of `text`
// as fit in `rows`; when some do not, the last line counts them. `rows` 0: unknown, all lines. Pure.
[[nodiscard]] std::string frame(std::string_view status, std::string_view text, std::size_t rows);

}  // namespace neuron::ls
