#include "tools/neuron-top/view_state.h"

#include <algorithm>
#include <cctype>

#include "tools/neuron-top/memory_tree.h"
#include "tools/neuron-top/panels.h"

namespace neuron::top {
namespace {

constexpr int kPage = 10;

int index_of(const std::vector<int>& values, int value) {
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

// Tab 0 is "all"; a process that is gone counts as it too.
void choose_tab(ViewState& state, const KeyContext& context, int number) {
  if (number < 0 || number > static_cast<int>(context.tabs.size())) return;
  state.tab = number == 0 ? 0 : context.tabs[static_cast<std::size_t>(number - 1)];
  state.cursor = 0;
}

void next_tab(ViewState& state, const KeyContext& context, int step) {
  const int count = static_cast<int>(context.tabs.size()) + 1;
  const int now = index_of(context.tabs, state.tab) + 1;
  choose_tab(state, context, (now + step + count) % count);
}

void choose_panel(ViewState& state, Panel panel) {
  if (state.panel != panel) state.cursor = 0;
  state.panel = panel;
}

void move(ViewState& state, const KeyContext& context, int step) {
  const int last = std::max(static_cast<int>(context.rows.size()) - 1, 0);
  state.cursor = std::clamp(std::min(state.cursor, last) + step, 0, last);
}

enum class Fold { open, close, toggle };

void fold(ViewState& state, const KeyContext& context, Fold how) {
  const auto row = static_cast<std::size_t>(std::max(state.cursor, 0));
  if (row >= context.rows.size()) return;
  const std::string& key = context.rows[row];
  if (std::find(context.nodes.begin(), context.nodes.end(), key) == context.nodes.end()) return;
  const bool open = state.expanded.contains(key);
  if (open && how != Fold::open) state.expanded.erase(key);
  if (!open && how != Fold::close) state.expanded.insert(key);
}

void fold_everything(ViewState& state, const KeyContext& context) {
  const bool any_closed = std::any_of(context.nodes.begin(), context.nodes.end(),
                                      [&](const std::string& key) { return !state.expanded.contains(key); });
  state.expanded.clear();
  if (any_closed) state.expanded.insert(context.nodes.begin(), context.nodes.end());
}

template <typename Enum>
Enum cycled(Enum value, int count) {
  return static_cast<Enum>((static_cast<int>(value) + 1) % count);
}

void press_character(ViewState& state, char character, const KeyContext& context) {
  switch (character) {
    case 'q':
      state.quit = true;
      break;
    case 'a':
      next_tab(state, context, -1);
      break;
    case 'd':
      next_tab(state, context, 1);
      break;
    case 'x':
      fold_everything(state, context);
      break;
    case 'f':
      state.flops = !state.flops;
      break;
    case ' ':
      state.paused = !state.paused;
      break;
    case '?':
    case 'h':
      state.help = true;
      break;
    case 's':
      state.sort = cycled(state.sort, 4);
      break;
    case 'u':
      state.cores = cycled(state.cores, 3);
      break;
    case 'm':
      choose_panel(state, Panel::memory);
      break;
    case 'c':
      choose_panel(state, Panel::condition);
      break;
    case 'e':
      choose_panel(state, Panel::efa);
      break;
    case 'p':
      choose_panel(state, Panel::processes);
      break;
    case 'g':
      choose_panel(state, Panel::history);
      break;
    case '/':
      state.editing = true;
      state.draft = state.filter;
      break;
    default:
      if (character >= '1' && character <= '9') choose_tab(state, context, character - '1');
  }
}

void press_while_editing(ViewState& state, Key key) {
  if (key.code == KeyCode::character && state.draft.size() < kMaxFilter) {
    state.draft += static_cast<char>(std::tolower(static_cast<unsigned char>(key.character)));
  } else if (key.code == KeyCode::backspace && !state.draft.empty()) {
    state.draft.pop_back();
  } else if (key.code == KeyCode::enter || key.code == KeyCode::escape) {
    state.editing = false;
    if (key.code == KeyCode::enter) state.filter = state.draft;
    state.draft.clear();
    state.cursor = 0;
  }
}

void press_plainly(ViewState& state, Key key, const KeyContext& context) {
  switch (key.code) {
    case KeyCode::character:
      press_character(state, key.character, context);
      break;
    case KeyCode::up:
      move(state, context, -1);
      break;
    case KeyCode::down:
      move(state, context, 1);
      break;
    case KeyCode::page_up:
      move(state, context, -kPage);
      break;
    case KeyCode::page_down:
      move(state, context, kPage);
      break;
    case KeyCode::home:
      state.cursor = 0;
      break;
    case KeyCode::end:
      move(state, context, static_cast<int>(context.rows.size()));
      break;
    case KeyCode::left:
      fold(state, context, Fold::close);
      break;
    case KeyCode::right:
      fold(state, context, Fold::open);
      break;
    case KeyCode::enter:
      fold(state, context, Fold::toggle);
      break;
    case KeyCode::tab:
      choose_panel(state, cycled(state.panel, 5));
      break;
    case KeyCode::escape:
      state.filter.clear();
      break;
    case KeyCode::backspace:
    case KeyCode::none:
      break;
  }
}

}  // namespace

ViewState press(ViewState state, Key key, const KeyContext& context) {
  if (state.editing) {
    press_while_editing(state, key);
  } else if (state.help) {
    state.help = false;
    if (key.code == KeyCode::character && key.character == 'q') state.quit = true;
  } else {
    press_plainly(state, key, context);
  }
  return state;
}

KeyContext key_context(const ViewModel& model, const ViewState& state) {
  KeyContext context;
  context.rows = panel_rows(model, state);
  if (state.panel == Panel::memory) context.nodes = memory_nodes(model, state);
  for (const ProcessView& process : model.processes) context.tabs.push_back(process.pid);
  return context;
}

model::UsageRequest request_for(const ViewState& state) {
  model::UsageRequest request;
  request.flops = state.flops;
  request.power = state.panel == Panel::condition;
  request.efa = state.panel == Panel::efa || state.panel == Panel::history;
  return request;
}

}  // namespace neuron::top
