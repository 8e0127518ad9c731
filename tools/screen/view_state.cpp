#include "tools/screen/view_state.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "tools/screen/panels.h"

namespace neuron::screen {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return lower(text).find(part) != std::string::npos;
}

// "3" and "nd3" mean that device only, not 13.
bool names_device(const std::string& filter, int index) {
  return filter == std::to_string(index) || filter == "nd" + std::to_string(index);
}

bool is_device_name(const std::string& filter) {
  const std::string digits = filter.starts_with("nd") ? filter.substr(2) : filter;
  return !digits.empty() && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

const ProcessView* chosen_process(const ViewModel& model, const ViewState& state) {
  for (const ProcessView& process : model.processes) {
    if (state.tab != 0 && process.pid == state.tab) return &process;
  }
  return nullptr;
}

bool passes(const ViewModel& model, const ViewState& state, const DeviceView& device) {
  if (const ProcessView* process = chosen_process(model, state)) {
    if (std::ranges::find(process->devices, device.index) == process->devices.end()) return false;
  }
  const std::string& filter = state.filter;
  if (filter.empty()) return true;
  if (is_device_name(filter)) return names_device(filter, device.index);
  if (contains(std::string(model::to_string(device.health.state)), filter) || contains(device.health.reason, filter)) {
    return true;
  }
  if (contains(pods_of_device(model, device), filter)) return true;
  return std::ranges::any_of(model.processes, [&](const ProcessView& process) {
    const bool holds = std::ranges::find(process.devices, device.index) != process.devices.end();
    return holds && (contains(process.label, filter) || contains(process.command, filter));
  });
}

// Worst first.
int rank(model::HealthState state) {
  using State = model::HealthState;
  constexpr std::array kOrder = {State::unhealthy, State::degraded, State::unknown, State::healthy};
  return static_cast<int>(std::ranges::find(kOrder, state) - kOrder.begin());
}

bool before(const DeviceView& a, const DeviceView& b, Sort sort) {
  if (sort == Sort::utilization) return a.percent.value_or(-1) > b.percent.value_or(-1);
  if (sort == Sort::memory) return a.device_bytes.value_or(0) > b.device_bytes.value_or(0);
  if (sort == Sort::health) return rank(a.health.state) < rank(b.health.state);
  return a.index < b.index;
}

bool before(const EfaView& a, const EfaView& b, Sort sort) {
  const auto traffic = [](const EfaView& efa) { return efa.rx.value_or(-1) + efa.tx.value_or(-1); };
  if (sort == Sort::utilization || sort == Sort::memory) return traffic(a) > traffic(b);
  if (sort == Sort::health) return rank(a.health.state) < rank(b.health.state);
  return false;
}

bool before(const ProcessView& a, const ProcessView& b, Sort sort) {
  const auto cpu = [](const ProcessView& p) { return p.user_percent.value_or(-1) + p.system_percent.value_or(0); };
  if (sort == Sort::utilization) return cpu(a) > cpu(b);
  if (sort == Sort::memory) return a.device_bytes > b.device_bytes;
  return a.pid < b.pid;
}

template <typename T>
void sort_by(std::vector<const T*>& rows, Sort sort) {
  std::ranges::stable_sort(rows, [sort](const T* a, const T* b) { return before(*a, *b, sort); });
}

constexpr int kPage = 10;

int index_of(const std::vector<int>& values, int value) {
  const auto found = std::ranges::find(values, value);
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

// Tab 0 is "all", as is the tab of an ended process.
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
  if (std::ranges::find(context.nodes, key) == context.nodes.end()) return;
  const bool open = state.expanded.contains(key);
  if (open && how != Fold::open) state.expanded.erase(key);
  if (!open && how != Fold::close) state.expanded.insert(key);
}

void fold_everything(ViewState& state, const KeyContext& context) {
  const bool any_closed =
      std::ranges::any_of(context.nodes, [&](const std::string& key) { return !state.expanded.contains(key); });
  state.expanded.clear();
  if (any_closed) state.expanded.insert(context.nodes.begin(), context.nodes.end());
}

template <typename Enum>
Enum cycled(Enum value, int count) {
  return static_cast<Enum>((static_cast<int>(value) + 1) % count);
}

struct KeyAction {
  Key key;
  void (*act)(ViewState& state, const KeyContext& context);
};

constexpr Key letter(char character) {
  return {KeyCode::character, character};
}

constexpr std::array<KeyAction, 21> kKeyActions = {{
    {letter('q'), [](ViewState& state, const KeyContext&) { state.quit = true; }},
    {letter('a'), [](ViewState& state, const KeyContext& context) { next_tab(state, context, -1); }},
    {letter('d'), [](ViewState& state, const KeyContext& context) { next_tab(state, context, 1); }},
    {letter('x'), fold_everything},
    {letter('f'), [](ViewState& state, const KeyContext&) { state.flops = !state.flops; }},
    {letter(' '), [](ViewState& state, const KeyContext&) { state.paused = !state.paused; }},
    {letter('?'), [](ViewState& state, const KeyContext&) { state.help = true; }},
    {letter('h'), [](ViewState& state, const KeyContext&) { state.help = true; }},
    {letter('s'), [](ViewState& state, const KeyContext&) { state.sort = cycled(state.sort, 4); }},
    {letter('u'), [](ViewState& state, const KeyContext&) { state.cores = cycled(state.cores, 3); }},
    {{KeyCode::up}, [](ViewState& state, const KeyContext& context) { move(state, context, -1); }},
    {{KeyCode::down}, [](ViewState& state, const KeyContext& context) { move(state, context, 1); }},
    {{KeyCode::page_up}, [](ViewState& state, const KeyContext& context) { move(state, context, -kPage); }},
    {{KeyCode::page_down}, [](ViewState& state, const KeyContext& context) { move(state, context, kPage); }},
    {{KeyCode::home}, [](ViewState& state, const KeyContext&) { state.cursor = 0; }},
    {{KeyCode::end},
     [](ViewState& state, const KeyContext& context) { move(state, context, static_cast<int>(context.rows.size())); }},
    {{KeyCode::left}, [](ViewState& state, const KeyContext& context) { fold(state, context, Fold::close); }},
    {{KeyCode::right}, [](ViewState& state, const KeyContext& context) { fold(state, context, Fold::open); }},
    {{KeyCode::enter}, [](ViewState& state, const KeyContext& context) { fold(state, context, Fold::toggle); }},
    {{KeyCode::tab}, [](ViewState& state, const KeyContext&) { choose_panel(state, cycled(state.panel, 5)); }},
    {{KeyCode::escape}, [](ViewState& state, const KeyContext&) { state.filter.clear(); }},
}};
constexpr std::string_view kPanelKeys = "mcepg";  // in the order of Panel

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
  for (const KeyAction& action : kKeyActions) {
    const bool same = action.key.code == key.code && action.key.character == key.character;
    if (same) return action.act(state, context);
  }
  if (key.code != KeyCode::character) return;
  if (const auto panel = kPanelKeys.find(key.character); panel != std::string_view::npos) {
    choose_panel(state, static_cast<Panel>(panel));
  } else if (key.character == '/') {
    state.editing = true;
    state.draft = state.filter;
  } else if (key.character >= '1' && key.character <= '9') {
    choose_tab(state, context, key.character - '1');
  }
}

}  // namespace

std::vector<const DeviceView*> shown_devices(const ViewModel& model, const ViewState& state) {
  std::vector<const DeviceView*> shown;
  for (const DeviceView& device : model.devices) {
    if (passes(model, state, device)) shown.push_back(&device);
  }
  sort_by(shown, state.sort);
  return shown;
}

std::vector<const EfaView*> shown_efas(const ViewModel& model, const ViewState& state) {
  std::vector<const EfaView*> shown;
  for (const EfaView& efa : model.efas) {
    const bool passes = state.filter.empty() || contains(efa.name, state.filter) ||
                        contains(std::string(model::to_string(efa.health.state)), state.filter) ||
                        contains(pods_of_efa(model, efa.name), state.filter);
    if (passes) shown.push_back(&efa);
  }
  sort_by(shown, state.sort);
  return shown;
}

std::vector<const ProcessView*> shown_processes(const ViewModel& model, const ViewState& state) {
  std::vector<const ProcessView*> shown;
  for (const ProcessView& process : model.processes) {
    if (state.tab != 0 && chosen_process(model, state) != nullptr && process.pid != state.tab) continue;
    const bool passes =
        state.filter.empty() || contains(process.label, state.filter) || contains(process.command, state.filter) ||
        contains(std::to_string(process.pid), state.filter) || contains(pods_of_process(model, process), state.filter);
    if (passes) shown.push_back(&process);
  }
  sort_by(shown, state.sort);
  return shown;
}

std::string_view to_string(Sort sort) {
  constexpr std::array<std::string_view, 4> kNames = {"index", "utilization", "memory", "health"};  // as Sort
  return kNames[static_cast<std::size_t>(sort)];
}

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

}  // namespace neuron::screen
