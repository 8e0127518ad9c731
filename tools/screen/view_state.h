#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/screen/view_model.h"

// The user's choices, the keys that change them (state and key in, state out), and the rows that pass them. Pure, no
// terminal.
namespace neuron::screen {

// The input of a terminal for a key.

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

inline constexpr std::size_t kMaxFilter = 40;

// The rows and nodes on the screen now, and the tabs: a key may refer to them.
struct KeyContext {
  std::vector<std::string> rows;   // keys of the panel's rows, from the top
  std::vector<std::string> nodes;  // keys of everything that can be opened
  std::vector<int> tabs;           // pids, in the order of the tabs after "all"
};

[[nodiscard]] KeyContext key_context(const ViewModel& model, const ViewState& state);
[[nodiscard]] ViewState press(ViewState state, Key key, const KeyContext& context);

// The request for the values of this view, and no others.
[[nodiscard]] model::UsageRequest request_for(const ViewState& state);

// The devices, interfaces and processes that pass the chosen tab and filter, in the chosen order. The pointers live as
// long as the model.
[[nodiscard]] std::vector<const DeviceView*> shown_devices(const ViewModel& model, const ViewState& state);
[[nodiscard]] std::vector<const EfaView*> shown_efas(const ViewModel& model, const ViewState& state);
[[nodiscard]] std::vector<const ProcessView*> shown_processes(const ViewModel& model, const ViewState& state);

[[nodiscard]] std::string_view to_string(Sort sort);

}  // namespace neuron::screen
