#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "tools/screen/terminal.h"
#include "tools/screen/view_state.h"

// The loop of a live screen, and what a program with one needs of its process.
namespace neuron::screen {

// Contents of the screen, and the handling of keys and samples. All calls come from the thread of run_live().
class LiveView {
 public:
  LiveView() = default;
  virtual ~LiveView() = default;
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  [[nodiscard]] virtual bool done() const = 0;
  [[nodiscard]] virtual int sample_fd() const = 0;  // readable: there is a sample
  virtual void on_sample() = 0;
  virtual void on_timer() = 0;
  virtual void on_keys(const std::vector<Key>& keys) = 0;
  virtual void draw() = 0;  // as it is now; not where the terminal takes no output
};

// Until the view is done, the terminal is closed, or a signal that ends comes. `signals`: of catch_signals(). The
// timer's first time is after half a second at most. Errors: internal (no timer, poll failed).
[[nodiscard]] Result<void> run_live(LiveView& view, Terminal& terminal, std::chrono::milliseconds interval,
                                    int signals);

// A pipe with a byte, the signal's number, for each signal that ends, stops or resizes; SIGPIPE is ignored. A handler
// and not a signalfd: it interrupts a write to the terminal. Once, before curses and any thread. Errors: internal.
[[nodiscard]] Result<Fd> catch_signals();

// Takes a signal of that pipe, for a program without a screen. True: it ends the program. SIGTSTP stops the process
// until SIGCONT; a resize means nothing.
[[nodiscard]] bool take_signal(int signals);

[[nodiscard]] render::Style style_of_stdout();  // from the environment, the locale and the terminal
[[nodiscard]] int print_columns();              // COLUMNS, else the terminal's width, else 120

// The terminal for a full screen. Should the program crash while it lives, the terminal is given back by a signal
// handler, which reaches only globals: the only ones of these programs. One at a time. Errors: as Terminal::open.
class LiveTerminal {
 public:
  [[nodiscard]] static Result<LiveTerminal> open(render::ColourDepth colour);
  ~LiveTerminal();
  LiveTerminal(LiveTerminal&&) = default;
  LiveTerminal& operator=(LiveTerminal&&) = default;
  [[nodiscard]] Terminal& get() { return *terminal_; }

 private:
  explicit LiveTerminal(std::unique_ptr<Terminal> terminal) : terminal_(std::move(terminal)) {}
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace neuron::screen
