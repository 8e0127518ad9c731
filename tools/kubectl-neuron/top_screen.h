#pragma once

#include <chrono>
#include <string>

#include "agent/base/result.h"
#include "tools/kubectl-neuron/options.h"
#include "tools/kubectl-neuron/top.h"
#include "tools/render/canvas.h"
#include "tools/screen/table.h"
#include "tools/screen/view_state.h"

// The screen of `kubectl neuron top`, the keys that change it, and the same as text. Pure.
namespace neuron::fleet {

struct TopState {
  TopBy by = TopBy::node;
  TopSort sort = TopSort::name;
  int cursor = 0;           // row, from 0; may exceed what is there
  std::string filter;       // lower case; "" = everything
  std::string draft;        // what is being typed while `editing`
  std::string opened;       // name of the node whose own screen is shown; "" = the fleet
  screen::ViewState inner;  // of that screen
  bool editing = false;
  bool paused = false;
  bool help = false;
  bool quit = false;
};

// `opened`: the node's view, where one is opened, else nullptr.
[[nodiscard]] TopState press(TopState state, screen::Key key, const Top& top, const screen::ViewModel* opened);

[[nodiscard]] screen::Table top_table(const Top& top, const TopState& state, render::Charset charset);

// The fleet's screen. `message`: at the right of the first line.
[[nodiscard]] render::Canvas draw_top(const Top& top, const TopState& state, const std::string& message,
                                      render::Charset charset, int rows, int columns);

// Sums and the whole table, for --once. `columns` at least 60.
[[nodiscard]] render::Canvas print_top(const Top& top, const TopState& state, render::Charset charset, int columns);

// Shows the fleet on the terminal, read again every `interval`, until the user presses q or a signal ends it. The first
// reading is done before the screen appears. Errors: as documents_of and screen::run_live. Before any other thread.
[[nodiscard]] Result<void> show_top(const Options& options, std::chrono::milliseconds interval, TopState state);

}  // namespace neuron::fleet
