#include "tools/kubectl-neuron/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "agent/base/parse.h"
#include "tools/render/text.h"
#include "tools/screen/screen.h"

namespace neuron::fleet {
namespace {

using render::Role;
using screen::Align;
using screen::KeyCode;
using screen::TableCell;

constexpr int kPage = 10;
constexpr int kHeadLines = 3;
constexpr std::size_t kMostUnknown = 4;

std::string bar_of(std::optional<double> percent, render::Charset charset) {
  constexpr int kWidth = 10;
  render::Canvas canvas(1, kWidth, charset);
  if (!percent) return "";
  render::draw_bar(canvas, 0, 0, kWidth, {{*percent / 100, Role::good}});
  std::string text;
  for (int column = 0; column < kWidth; ++column) text += render::utf8_of(canvas.at(0, column).character);
  return text;
}

std::string cut(const std::string& text, int columns) {
  return render::shorten(text, static_cast<std::size_t>(std::max(columns, 3)));
}

TableCell health_cell(const TopRow& row) {
  if (!row.condition.empty()) return {row.condition, Role::warning};
  if (row.unhealthy > 0) return {fmt::format("{} unhealthy", row.unhealthy), Role::bad};
  if (row.degraded > 0) return {fmt::format("{} degraded", row.degraded), Role::warning};
  return {"healthy", Role::good};
}

TableCell idle_cell(const TopRow& row) {
  return {row.percent ? std::to_string(row.idle_cores) : std::string(screen::kUnknown),
          row.idle_cores > 0 ? Role::warning : Role::plain};
}

// Utilization, memory and traffic, the same in every table.
void add_use_columns(screen::Table& table) {
  table.columns.insert(table.columns.end(), {{"Idle", Align::right, 4, false},
                                             {"Busy", Align::left, 5, false},
                                             {"Use", Align::right, 0, false},
                                             {"Memory", Align::right, 1, false},
                                             {"of", Align::right, 3, false},
                                             {"Received", Align::right, 6, false},
                                             {"Sent", Align::right, 6, false},
                                             {"Health", Align::left, 2, true}});
}

void add_use_cells(screen::TableRow& line, const TopRow& row, render::Charset charset) {
  line.cells.push_back(idle_cell(row));
  line.cells.push_back({bar_of(row.percent, charset), Role::good});
  line.cells.push_back({screen::percent_text(row.percent, 1)});
  line.cells.push_back({screen::memory_text(row.memory_bytes)});
  line.cells.push_back({screen::memory_text(row.memory_size), Role::dim});
  line.cells.push_back({screen::rate_text(row.rx_bytes_per_second)});
  line.cells.push_back({screen::rate_text(row.tx_bytes_per_second)});
  line.cells.push_back(health_cell(row));
}

// The first label: nodes of a cluster mostly share the rest.
std::string short_name(const std::string& node) {
  return node.substr(0, node.find('.'));
}

screen::TableRow line_of(const TopRow& row, TopBy by, render::Charset charset) {
  screen::TableRow line;
  line.key = row.name;
  if (by == TopBy::node) {
    const bool silent = !row.holders_known;
    const auto share = [&](std::size_t part, std::size_t all) {
      return silent ? std::string(screen::kUnknown) : fmt::format("{}/{}", part, all);
    };
    line.cells = {{short_name(row.name)},
                  {row.instance_type},
                  {share(row.devices, row.all_devices)},
                  {share(row.cores, row.all_cores)},
                  {silent ? std::string(screen::kUnknown) : std::to_string(row.pods)}};
  } else if (by == TopBy::name_space) {
    line.cells = {{row.name},
                  {std::to_string(row.pods)},
                  {std::to_string(row.nodes)},
                  {std::to_string(row.devices)},
                  {std::to_string(row.cores)}};
  } else {
    line.cells = {{row.name},
                  {short_name(row.node)},
                  {std::to_string(row.devices)},
                  {std::to_string(row.cores)},
                  {std::to_string(row.efas)}};
  }
  add_use_cells(line, row, charset);
  return line;
}

int width_of(std::string_view text) {
  return static_cast<int>(render::display_width(text));
}

// The longest that is not wider.
std::string longest_of(const std::vector<std::string>& texts, int width) {
  for (const std::string& text : texts) {
    if (width_of(text) <= width) return text;
  }
  return texts.back();
}

void draw_held(render::Canvas& canvas, int line, const TopRow& sum) {
  const std::string bad = sum.unhealthy > 0 ? fmt::format("{} unhealthy", sum.unhealthy) : "";
  const int left = canvas.columns() - (bad.empty() ? 0 : width_of(bad) + 2);
  const auto held = [&](std::size_t count) { return sum.holders_known ? std::to_string(count) : "n/a"; };
  const auto whole = [&](std::size_t count, const char* noun) {
    return sum.has_report ? counted(count, noun) : "n/a " + plural(noun);
  };
  const std::string devices = fmt::format("{} of {} held", held(sum.devices), whole(sum.all_devices, "device"));
  const std::string cores = devices + fmt::format(", {} of {}", held(sum.cores), whole(sum.all_cores, "core"));
  const std::string idle =
      cores + fmt::format(", {} of them idle", sum.percent ? std::to_string(sum.idle_cores) : "n/a");
  const std::string all = idle + "; " + (sum.holders_known ? counted(sum.pods, "pod") : "n/a pods");
  canvas.put(line, 0, longest_of({all, idle, cores, devices}, left), Role::plain, std::max(left, 0));
  canvas.put_right(line, canvas.columns(), bad, Role::bad);
}

// The bar gives way first.
void draw_bars(render::Canvas& canvas, int line, const TopRow& sum) {
  constexpr int kWidest = 24, kNarrowest = 4;
  const std::string percent = screen::percent_text(sum.percent, 1);
  const std::string memory = screen::memory_text(sum.memory_bytes) + " of " + screen::memory_text(sum.memory_size);
  constexpr std::string_view kHeld = "Held cores ", kMemory = "Memory ";
  const int words = width_of(kHeld) + width_of(percent) + 3 + width_of(kMemory) + width_of(memory);
  const int bar = std::min(kWidest, canvas.columns() - words - 1);
  int column = canvas.put(line, 0, kHeld, Role::label);
  if (bar >= kNarrowest) {
    render::draw_bar(canvas, line, column, bar, {{sum.percent.value_or(0) / 100, Role::good}});
    column += bar + 1;
  }
  column = canvas.put(line, column, percent);
  if (column + 3 + width_of(kMemory) + width_of(memory) > canvas.columns()) return;
  canvas.put(line, canvas.put(line, column + 3, kMemory, Role::label), memory);
}

int draw_sums(render::Canvas& canvas, int line, const Top& top) {
  draw_held(canvas, line, top.sum);
  draw_bars(canvas, line + 1, top.sum);
  return line + 2;
}

std::string heading_of(const TopState& state) {
  std::string heading = "By " + std::string(to_string(state.by));
  if (state.sort != TopSort::name) heading += ", sorted by " + std::string(to_string(state.sort));
  if (!state.filter.empty()) heading += ", only " + state.filter;
  return heading;
}

struct Hint {
  std::string_view key;
  std::string_view text;
};
constexpr std::array<Hint, 8> kHints = {{{"q", "quit"},
                                         {"tab", "node, namespace, pod"},
                                         {"s", "sort"},
                                         {"/", "filter"},
                                         {"enter", "open"},
                                         {"escape", "back"},
                                         {"space", "pause"},
                                         {"?", "help"}}};

void draw_keys(render::Canvas& canvas, int line, const TopState& state) {
  if (state.editing) {
    canvas.put(line, canvas.put(line, 0, "Filter: ", Role::key), state.draft + '_');
    return;
  }
  int column = 0;
  for (const Hint& hint : kHints) {
    if (column + static_cast<int>(hint.key.size() + hint.text.size()) + 1 > canvas.columns()) break;
    column = canvas.put(line, canvas.put(line, column, hint.key, Role::key) + 1, hint.text, Role::dim) + 2;
  }
}

constexpr std::array<std::string_view, 9> kHelp = {
    "1 2 3, tab   by node, namespace, pod",
    "up, down     select a row; page up, page down, home, end",
    "enter        node: its own screen; namespace: its pods; pod: its node",
    "escape       back, or show everything again",
    "s            sort by name, utilization, memory, devices, health",
    "/            show only what has this in its name, node, type or state",
    "space        pause, go on",
    "Idle         held cores that are not busy at all",
    "q            quit; any key closes this help"};

void draw_help(render::Canvas& canvas) {
  int line = std::max((canvas.rows() - static_cast<int>(kHelp.size())) / 2, 0);
  for (const std::string_view words : kHelp) {
    canvas.put(line, 0, std::string(static_cast<std::size_t>(canvas.columns()), ' '));
    canvas.put(line++, 2, words);
  }
}

// An error takes precedence over the title, the title over the time.
void draw_title(render::Canvas& canvas, const Top& top, const std::string& message) {
  const std::string title = "kubectl neuron top  " + counted(top.nodes.size(), "node");
  const std::string& right = message.empty() ? top.read_at : message;
  const bool fits = width_of(title) + 2 + width_of(right) <= canvas.columns();
  const bool is_alone = !fits && !message.empty();
  canvas.put(0, 0, is_alone ? message : title, is_alone ? Role::warning : Role::title);
  if (fits) canvas.put_right(0, canvas.columns(), right, message.empty() ? Role::dim : Role::warning);
}

void choose(TopState& state, TopBy by) {
  if (state.by != by) state.cursor = 0;
  state.by = by;
}

const TopRow* row_at(const Top& top, const TopState& state) {
  const auto rows = shown_rows(top, state.by, state.sort, state.filter);
  if (rows.empty()) return nullptr;
  return rows[static_cast<std::size_t>(std::clamp(state.cursor, 0, static_cast<int>(rows.size()) - 1))];
}

void open_row(TopState& state, const Top& top) {
  const TopRow* row = row_at(top, state);
  if (row == nullptr) return;
  if (state.by == TopBy::name_space) {
    state.filter = lower_ascii(row->name) + '/';
    choose(state, TopBy::pod);
    return;
  }
  state.opened = row->node;
  state.inner = {};
}

void move(TopState& state, const Top& top, int step) {
  const int count = static_cast<int>(shown_rows(top, state.by, state.sort, state.filter).size());
  state.cursor = std::clamp(std::min(state.cursor, count - 1) + step, 0, std::max(count - 1, 0));
}

void press_while_editing(TopState& state, screen::Key key) {
  if (key.code == KeyCode::character && state.draft.size() < screen::kMaxFilter) {
    state.draft += static_cast<char>(std::tolower(static_cast<unsigned char>(key.character)));
  } else if (key.code == KeyCode::backspace && !state.draft.empty()) {
    state.draft.pop_back();
  } else if (key.code == KeyCode::enter || key.code == KeyCode::escape) {
    state.editing = false;
    if (key.code == KeyCode::enter) state.filter = std::exchange(state.draft, "");
    state.draft.clear();
    state.cursor = 0;
  }
}

void press_character(TopState& state, char character) {
  if (character == 'q') state.quit = true;
  if (character == '1') choose(state, TopBy::node);
  if (character == '2') choose(state, TopBy::name_space);
  if (character == '3') choose(state, TopBy::pod);
  if (character == 's') state.sort = static_cast<TopSort>((static_cast<std::size_t>(state.sort) + 1) % kTopSorts);
  if (character == '?' || character == 'h') state.help = true;
  if (character == ' ') state.paused = !state.paused;
  if (character == '/') {
    state.editing = true;
    state.draft = state.filter;
  }
}

void press_plainly(TopState& state, screen::Key key, const Top& top) {
  constexpr int kAll = 1 << 20;
  switch (key.code) {
    case KeyCode::character:
      return press_character(state, key.character);
    case KeyCode::tab:
      return choose(state, static_cast<TopBy>((static_cast<int>(state.by) + 1) % 3));
    case KeyCode::enter:
    case KeyCode::right:
      return open_row(state, top);
    case KeyCode::escape:
    case KeyCode::left:
      return state.filter.clear();
    case KeyCode::up:
      return move(state, top, -1);
    case KeyCode::down:
      return move(state, top, 1);
    case KeyCode::page_up:
      return move(state, top, -kPage);
    case KeyCode::page_down:
      return move(state, top, kPage);
    case KeyCode::home:
      return move(state, top, -kAll);
    case KeyCode::end:
      return move(state, top, kAll);
    case KeyCode::backspace:
    case KeyCode::none:
      return;
  }
}

// The keys of neuron-top; escape leaves it, where it has nothing of its own to close.
void press_inside(TopState& state, screen::Key key, const screen::ViewModel* opened) {
  const bool busy = state.inner.editing || state.inner.help || !state.inner.filter.empty();
  if (opened == nullptr || (key.code == KeyCode::escape && !busy)) {
    state.opened.clear();
    return;
  }
  state.inner = screen::press(std::move(state.inner), key, screen::key_context(*opened, state.inner));
  state.quit = state.inner.quit;
  state.paused = state.inner.paused;
}

}  // namespace

TopState press(TopState state, screen::Key key, const Top& top, const screen::ViewModel* opened) {
  if (!state.opened.empty()) {
    press_inside(state, key, opened);
  } else if (state.editing) {
    press_while_editing(state, key);
  } else if (state.help) {
    state.help = false;
    state.quit = key.code == KeyCode::character && key.character == 'q';
  } else {
    press_plainly(state, key, top);
  }
  return state;
}

screen::Table top_table(const Top& top, const TopState& state, render::Charset charset) {
  screen::Table table;
  if (state.by == TopBy::node) {
    table.columns = {{"Node", Align::left, 0, false},
                     {"Type", Align::left, 7, false},
                     {"Devices", Align::right, 2, false},
                     {"Cores", Align::right, 0, false},
                     {"Pods", Align::right, 5, false}};
  } else if (state.by == TopBy::name_space) {
    table.columns = {{"Namespace", Align::left, 0, false},
                     {"Pods", Align::right, 2, false},
                     {"Nodes", Align::right, 5, false},
                     {"Devices", Align::right, 2, false},
                     {"Cores", Align::right, 0, false}};
  } else {
    table.columns = {{"Pod", Align::left, 0, false},
                     {"Node", Align::left, 3, false},
                     {"Devices", Align::right, 2, false},
                     {"Cores", Align::right, 0, false},
                     {"EFA", Align::right, 5, false}};
  }
  add_use_columns(table);
  for (const TopRow* row : shown_rows(top, state.by, state.sort, state.filter)) {
    table.rows.push_back(line_of(*row, state.by, charset));
  }
  if (!table.rows.empty()) return table;
  table.note = !state.filter.empty()     ? "nothing matches"
               : top.is_partial          ? "cannot tell which nodes have Neuron devices: not all could be read"
               : state.by == TopBy::node ? "no node has Neuron devices or EFA interfaces, as far as this user may read"
               : !top.sum.holders_known  ? "cannot tell what holds hardware: no agent has said it"
                                         : "nothing holds hardware";
  return table;
}

render::Canvas draw_top(const Top& top, const TopState& state, const std::string& message, render::Charset charset,
                        int rows, int columns) {
  render::Canvas canvas(rows, columns, charset);
  draw_title(canvas, top, message);
  int line = draw_sums(canvas, 1, top);
  if (rows > kHeadLines + 3) {
    screen::draw_heading(canvas, line++, heading_of(state));
    const int unknown = top.unknown.empty() ? 0 : 1;
    screen::draw_table(canvas, line, rows - line - 1 - unknown, top_table(top, state, charset), state.cursor);
    if (unknown > 0) canvas.put(rows - 2, 0, cut(top.unknown.front(), columns), Role::warning);
  }
  draw_keys(canvas, rows - 1, state);
  if (state.help) draw_help(canvas);
  return canvas;
}

render::Canvas print_top(const Top& top, const TopState& state, render::Charset charset, int columns) {
  const screen::Table table = top_table(top, state, charset);
  const std::size_t unknown = std::min(top.unknown.size(), kMostUnknown);
  const int height = screen::table_height(table);
  render::Canvas canvas(kHeadLines + 1 + height + static_cast<int>(unknown), columns, charset);
  draw_title(canvas, top, "");
  int line = draw_sums(canvas, 1, top);
  screen::draw_heading(canvas, line++, heading_of(state));
  line += screen::draw_table(canvas, line, height, table, screen::kNoCursor);
  for (std::size_t i = 0; i < unknown; ++i) canvas.put(line++, 0, cut(top.unknown[i], columns), Role::warning);
  return canvas;
}

}  // namespace neuron::fleet
