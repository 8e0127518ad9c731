#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "tools/render/canvas.h"
#include "tools/screen/view_state.h"

namespace neuron::screen {

// Giving the screen back waits for the output to drain, for ever on a terminal that takes none (control-S, stuck).
// Without IXON a control-S that was pressed ends (Linux, n_tty_set_termios) and one that is still on its way stops
// nothing; curses puts the shell's mode back. Also for a signal handler.
void let_output_flow();

// The terminal on stdin and stdout, in full-screen mode for as long as the object lives; the only user of curses. One
// object at a time, one thread. curses installs a signal handler where there is none: catch_signals() of live.h
// comes before.
class Terminal {
 public:
  // Errors: unavailable (stdin or stdout is no terminal, or its type is unknown or has no movable cursor).
  [[nodiscard]] static Result<std::unique_ptr<Terminal>> open(render::ColourDepth colour);
  ~Terminal();  // gives the screen back as it was
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] int rows() const;
  [[nodiscard]] int columns() const;

  // Reads the size from the kernel again and restores the line mode, after SIGWINCH and SIGCONT. The next show() draws
  // everything.
  void resize();

  // False while the terminal takes no output (control-S, a stuck reader): show() would wait for it.
  [[nodiscard]] bool can_show() const;

  // Shows the picture; only cells that changed since the last one are sent.
  void show(const render::Canvas& canvas);

  // Keys that were pressed since the last call; empty when none was. Never blocks.
  [[nodiscard]] std::vector<Key> read_keys();

  // Gives the screen back (before stopping) and takes it again.
  void suspend();
  void resume();

  // The text that gives the terminal back without this object: for a program that crashes.
  [[nodiscard]] static std::string restore_text();

 private:
  explicit Terminal(render::ColourDepth colour);
  void prepare_colours();
  void show_row(const render::Canvas& canvas, int row, bool everything);

  render::ColourDepth colour_;
  std::unique_ptr<render::Canvas> shown_;  // what is on the screen; null = unknown
};

}  // namespace neuron::screen
