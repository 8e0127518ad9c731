#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "tools/render/canvas.h"
#include "tools/screen/view_state.h"

namespace neuron::screen {

// The terminal on stdin and stdout, in full-screen mode for as long as the object lives; the only user of curses. One
// object at a time, one thread. curses installs signal handlers when it starts: block the signals of live.h before,
// so that these handlers never run.
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
