#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/neuron-top/view_model.h"

// What the user chose, and what a key changes of it: state and key in, state out. Pure, no terminal.
namespace neuron::top {

enum class Panel { memory, condition, efa, processes, history };
enum class Sort { index, utilization, memory, health };
enum class CoreLayout { automatic, bars, compact };

struct ViewState {
  Panel panel = Panel::memory;
  CoreLayout cores = CoreLayout::automatic;
  Sort sort = Sort::index;
  int tab = 0;                     // pid of the chosen process; 0 = all
  int cursor = 0;                  // row of the panel, from 0; may exceed what is there
  std::set<std::string> expanded;  // keys of the open nodes of the memory tree
  std::string filter;              // lower case; "" = everything
  std::string draft;               // what is being typed while `editing`
  bool editing = false;
  bool flops = false;
  bool paused = false;
  bool help = false;
  bool quit = false;
  friend bool operator==(const ViewState&, const ViewState&) = default;
};

enum class KeyCode {
  character,
  up,
  down,
  left,
  right,
  page_up,
  page_down,
  home,
  end,
  enter,
  escape,
  backspace,
  tab,
  none
};

struct Key {
  KeyCode code = KeyCode::none;
  char character = 0;  // of KeyCode::character, printable ASCII
};

inline constexpr std::size_t kMaxFilter = 40;

// What a key may refer to: the rows and nodes on the screen now, and the tabs.
struct KeyContext {
  std::vector<std::string> rows;   // keys of the panel's rows, from the top
  std::vector<std::string> nodes;  // keys of everything that can be opened
  std::vector<int> tabs;           // pids, in the order of the tabs after "all"
};

[[nodiscard]] KeyContext key_context(const ViewModel& model, const ViewState& state);
[[nodiscard]] ViewState press(ViewState state, Key key, const KeyContext& context);

// What has to be read for a view, and no more.
[[nodiscard]] model::UsageRequest request_for(const ViewState& state);

}  // namespace neuron::top
