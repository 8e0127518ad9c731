#include "tools/screen/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace neuron::screen {
namespace {

struct Entry {
  std::string text;
  Role role = Role::plain;
  int most_lines = 2;
};

struct Worst {
  std::string name;
  const model::Health* health = nullptr;  // null: all are healthy
  int others = 0;
};

Worst worst_of(const ViewModel& model) {
  Worst worst;
  int count = 0;
  const auto consider = [&](const std::string& name, const model::Health& health) {
    if (model::badness(health.state) == 0) return;
    ++count;
    if (worst.health != nullptr && model::badness(health.state) <= model::badness(worst.health->state)) return;
    worst.name = name;
    worst.health = &health;
  };
  for (const DeviceView& device : model.devices) consider(fmt::format("ND{}", device.index), device.health);
  for (const EfaView& efa : model.efas) consider(efa.name, efa.health);
  worst.others = std::max(count - 1, 0);
  return worst;
}

void add_worst(std::vector<Entry>& entries, const Worst& worst) {
  const model::Health& health = *worst.health;
  const bool unknown = health.state == model::HealthState::unknown;
  const Role role = unknown ? Role::warning : role_of(health.state);
  std::string text = unknown ? fmt::format("health of {} is unknown", worst.name)
                             : fmt::format("{} is {}", worst.name, model::to_string(health.state));
  if (worst.others > 0) text += fmt::format(" (+{} more: c, e)", worst.others);
  if (!health.sentence.empty()) text += ": " + health.sentence;
  entries.push_back({std::move(text), role});
  if (!health.action.empty()) entries.push_back({"  what to do: " + health.action, role});
}

std::vector<TableCell> lines_of(const std::vector<Entry>& entries, int columns) {
  std::vector<TableCell> lines;
  for (const Entry& entry : entries) {
    for (std::string& line : wrapped(entry.text, columns, entry.most_lines)) {
      lines.push_back({std::move(line), entry.role});
    }
  }
  return lines;
}

constexpr int kHelpWidth = 72;

constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kKeys = {{
    {"q", "quit"},
    {"? h", "this help; any key closes it, q quits"},
    {"up down", "select a row (also page up, page down, home, end)"},
    {"enter", "open or close the selected item of the memory tree"},
    {"left right", "close, open it"},
    {"x", "open or close the entire tree"},
    {"a d", "previous, next app"},
    {"1 to 9", "app of that number; 1 is all"},
    {"f", "teraflops on, off"},
    {"m", "memory per device and core"},
    {"c", "condition: health, ECC errors, power"},
    {"e", "EFA interfaces: throughput and errors"},
    {"p", "processes and pods"},
    {"g", "graphs of the last samples; tab: the next of m c e p g"},
    {"u", "cores as bars, compact, or as fits"},
    {"s", "sort by index, utilization, memory, health"},
    {"/", "show only matches; escape shows everything again"},
    {"space", "pause, go on"},
    {"ND! ND~ ND?", "unhealthy, degraded, unknown; CE UE: (un)corrected"},
}};

constexpr int kLeastPanel = 4;   // heading, titles, two rows
constexpr int kGoodPanel = 8;    // lines kept for the panel before bars are chosen for the cores
constexpr int kBottomLines = 2;  // tabs and keys
constexpr int kTallRows = 30;    // from here on news may take all the lines it needs
constexpr int kRoomyRows = 40;   // from here on blank lines part the sections

std::string title(const ViewModel& model) {
  std::string text = "neuron-top " + model.version;
  if (!model.instance_id.empty()) text += " running on " + model.instance_id;
  if (!model.instance_type.empty()) text += " (" + model.instance_type + ')';
  return text;
}

// The message keeps its place at the right; the title is centred in the remaining room where they would meet.
void draw_title(render::Canvas& canvas, const Scene& scene, const Banner& banner) {
  const std::string text = title(scene.model);
  const auto length = [&](const std::string& part) {
    return static_cast<int>(render::cells_of(part, canvas.charset()).size());
  };
  const int message = banner.message.empty() ? 0 : length(banner.message) + 2;
  const bool meet = (canvas.columns() + length(text)) / 2 + 1 > canvas.columns() - message;
  canvas.put_centred(0, 0, canvas.columns() - (meet ? message : 0), text, Role::title);
  if (message > 0) {
    canvas.put_right(0, canvas.columns(), banner.message, banner.alarming ? Role::bad : Role::warning);
  }
}

void draw_tabs(render::Canvas& canvas, int row, const Scene& scene) {
  int column = canvas.put(row, 0, "Neuron Apps  ", Role::label);
  const auto put = [&](int number, const std::string& label, bool selected) {
    std::string name = label;
    if (name.size() > 24) name = name.substr(0, 21) + "...";
    const std::string text = selected ? fmt::format(">[{}]:{}<", number, name) : fmt::format(" [{}]:{} ", number, name);
    column = canvas.put(row, column, text, selected ? Role::tab_selected : Role::plain) + 1;
  };
  const auto& processes = scene.model.processes;
  const auto chosen =
      std::ranges::find_if(processes, [&](const ProcessView& process) { return process.pid == scene.state.tab; });
  put(1, "all", chosen == processes.end());
  // The chosen tab stays in view: those before it go when there are many.
  const auto at = chosen == processes.end() ? 0 : static_cast<int>(chosen - processes.begin());
  const int first = std::max(0, at - 3);
  if (first > 0) column = canvas.put(row, column, "... ", Role::dim);
  for (int i = first; i < static_cast<int>(processes.size()) && column < canvas.columns(); ++i) {
    const ProcessView& process = processes[static_cast<std::size_t>(i)];
    const bool twins = std::ranges::any_of(
        processes, [&](const ProcessView& other) { return other.pid != process.pid && other.label == process.label; });
    put(i + 2, twins ? fmt::format("{:.12} {}", process.label, process.pid) : process.label,
        chosen != processes.end() && i == at);
  }
  if (processes.empty() && !scene.model.no_processes.empty()) {
    canvas.put(row, column, "processes n/a: " + scene.model.no_processes, Role::dim);
  }
}

struct KeyHint {
  const char* key;
  const char* text;
};

constexpr KeyHint kHints[] = {{"q", "quit"},     {"? h", "help"},   {"m c e p g", "view"}, {"a/d", "app"},
                              {"f", "FLOPS"},    {"/", "filter"},   {"s", "sort"},         {"space", "pause"},
                              {"x", "open all"}, {"enter", "open"}, {"arrows", "select"},  {"u", "cores"}};

void draw_keys(render::Canvas& canvas, int row, const ViewState& state) {
  if (state.editing) {
    int column = canvas.put(row, 0, "Filter: ", Role::key);
    column = canvas.put(row, column, state.draft + '_');
    canvas.put(row, column + 3, "enter: apply   escape: leave it", Role::dim);
    return;
  }
  int column = 0;
  if (!state.filter.empty()) column = canvas.put(row, column, "filter " + state.filter + "  ", Role::warning);
  if (state.sort != Sort::index) {
    column = canvas.put(row, column, fmt::format("by {}  ", to_string(state.sort)), Role::warning);
  }
  for (const KeyHint& hint : kHints) {
    const int width = static_cast<int>(std::string_view(hint.key).size() + std::string_view(hint.text).size()) + 1;
    if (column + width > canvas.columns()) break;
    column = canvas.put(row, column, hint.key, Role::key);
    column = canvas.put(row, column + 1, hint.text, Role::dim) + 2;
  }
}

// Processes above, pods below; each gets what it needs, the processes at least half.
void draw_processes(render::Canvas& canvas, int row, int height, const Scene& scene) {
  const Table processes = process_table(scene);
  const Table pods = pod_table(scene);
  const int wanted = table_height(processes);
  const int left = std::max(height - table_height(pods) - 1, height / 2);
  const int used = draw_table(canvas, row, std::min(wanted, left), processes, scene.state.cursor);
  draw_table(canvas, row + used, height - used, pods, kNoCursor);
}

// The table, and in the last line or two the selected row's detail.
void draw_with_detail(render::Canvas& canvas, int row, int bottom, const Scene& scene) {
  constexpr int kLeastTable = 3;  // titles, a row, "rows 1 to 1 of 16"
  const Table table = panel_table(scene, canvas.columns());
  std::vector<std::string> lines;
  if (!table.rows.empty()) {
    const int last = static_cast<int>(table.rows.size()) - 1;
    const TableRow& row_of_cursor = table.rows[static_cast<std::size_t>(std::clamp(scene.state.cursor, 0, last))];
    const int room = bottom - row - kLeastTable;
    const std::string label = row_of_cursor.cells.front().text + ": ";
    if (!row_of_cursor.detail.empty() && room > 0) {
      lines = wrapped(label + row_of_cursor.detail, canvas.columns(), std::min(room, 2));
    }
  }
  bottom -= static_cast<int>(lines.size());
  draw_table(canvas, row, bottom - row, table, scene.state.cursor);
  for (const std::string& line : lines) canvas.put(bottom++, 0, line, Role::warning);
}

void draw_panel(render::Canvas& canvas, int row, int bottom, const Scene& scene) {
  if (bottom - row < 2) return;
  draw_heading(canvas, row, panel_title(scene));
  if (scene.state.panel == Panel::processes) {
    draw_processes(canvas, row + 1, bottom - row - 1, scene);
  } else {
    draw_with_detail(canvas, row + 1, bottom, scene);
  }
}

render::Canvas too_small(int rows, int columns, render::Charset charset) {
  render::Canvas canvas(rows, columns, charset);
  canvas.put(0, 0, fmt::format("neuron-top needs {} x {}", kLeastColumns, kLeastRows), Role::warning);
  canvas.put(1, 0, fmt::format("this is {} x {}", columns, rows));
  canvas.put(2, 0, "q: quit", Role::dim);
  return canvas;
}

}  // namespace

std::vector<TableCell> news(const Scene& scene, int columns, int most) {
  const ViewModel& model = scene.model;
  std::vector<Entry> entries;
  const Worst worst = worst_of(model);
  if (worst.health != nullptr) add_worst(entries, worst);
  const int missing = model.expected_devices - static_cast<int>(model.devices.size());
  if (missing > 0 && !model.devices.empty()) {
    entries.push_back(
        {fmt::format("{} of the {} devices of this instance type are missing", missing, model.expected_devices),
         Role::bad});
    if (worst.health == nullptr) {
      entries.push_back(
          {"  what to do: dmesg | grep -i neuron; stop and start the instance if they do not come back", Role::bad});
    }
  }
  if (auto reason = unsaid_reason(scene, columns); !reason.empty()) {
    entries.push_back({std::move(reason), Role::warning});
  }
  std::vector<TableCell> lines = lines_of(entries, columns);
  for (auto entry = entries.rbegin(); entry != entries.rend() && static_cast<int>(lines.size()) > most; ++entry) {
    entry->most_lines = 1;  // the last ones give way first
    lines = lines_of(entries, columns);
  }
  if (static_cast<int>(lines.size()) > most) lines.resize(static_cast<std::size_t>(most));
  return lines;
}

void draw_help(render::Canvas& canvas) {
  constexpr std::array<std::string_view, 6> kUtf8 = {"┌", "┐", "└", "┘", "─", "│"};
  constexpr std::array<std::string_view, 6> kAscii = {"+", "+", "+", "+", "-", "|"};
  const auto& frame = canvas.charset() == render::Charset::utf8 ? kUtf8 : kAscii;
  const int height = static_cast<int>(kKeys.size()) + 2;
  const int top = std::max((canvas.rows() - height) / 2, 0);
  const int left = std::max((canvas.columns() - kHelpWidth) / 2, 0);
  const int right = left + kHelpWidth - 1;
  for (int row = top; row < top + height; ++row) {
    for (int column = left; column <= right; ++column) canvas.put(row, column, " ");
    for (const int column : {left, right}) canvas.put(row, column, frame[5], Role::label);
  }
  for (int column = left; column <= right; ++column) {
    canvas.put(top, column, frame[column == left ? 0 : column == right ? 1 : 4], Role::label);
    canvas.put(top + height - 1, column, frame[column == left ? 2 : column == right ? 3 : 4], Role::label);
  }
  canvas.put(top, left + 2, " Keys ", Role::title);
  int row = top + 1;
  for (const auto& [key, meaning] : kKeys) {
    canvas.put(row, left + 2, key, Role::key);
    canvas.put(row++, left + 14, meaning);
  }
}

render::Canvas draw_screen(const Scene& scene, const Banner& banner, int rows, int columns) {
  if (rows < kLeastRows || columns < kLeastColumns) return too_small(rows, columns, scene.charset);
  render::Canvas canvas(rows, columns, scene.charset);
  draw_title(canvas, scene, banner);
  int row = 1;
  const int most_news = rows < kTallRows ? 4 : 7;
  for (const TableCell& line : news(scene, columns, most_news)) canvas.put(row++, 0, line.text, line.role);
  const int gap = rows >= kRoomyRows ? 1 : 0;
  const int below = kHostLines + kMemoryLines + kBottomLines + 3 * gap;
  row += gap;
  const int available = rows - row - 1 - below;
  const CoresLayout layout = lay_out_cores(scene, columns, available - kGoodPanel);
  row += draw_cores(canvas, row, available + 1 - kLeastPanel, scene, layout) + gap;
  row += draw_host(canvas, row, scene) + gap;
  row += draw_memory(canvas, row, scene) + gap;
  draw_panel(canvas, row, rows - kBottomLines, scene);
  draw_tabs(canvas, rows - 2, scene);
  draw_keys(canvas, rows - 1, scene.state);
  if (scene.state.help) draw_help(canvas);
  return canvas;
}

render::Canvas draw_print(const Scene& scene, int columns) {
  constexpr int kSectionLines = 32;
  const Table tables[] = {memory_table(scene.model, scene.state), condition_table(scene), efa_table(scene),
                          process_table(scene), pod_table(scene)};
  const char* const titles[] = {"Memory Usage Details", "Device Health, ECC and Power", "EFA Interfaces", "Processes",
                                "Pods"};
  int rows = kSectionLines + static_cast<int>(scene.model.devices.size() + scene.model.problems.size());
  for (const Table& table : tables) rows += table_height(table) + 2;
  render::Canvas canvas(rows, columns, scene.charset);
  draw_title(canvas, scene, {});
  int row = 1;
  for (const TableCell& line : news(scene, columns, kSectionLines / 2)) canvas.put(row++, 0, line.text, line.role);
  ++row;
  row += draw_cores(canvas, row, rows, scene, lay_out_cores(scene, columns, rows)) + 1;
  row += draw_host(canvas, row, scene) + 1;
  row += draw_memory(canvas, row, scene) + 1;
  for (std::size_t i = 0; i < std::size(tables); ++i) {
    draw_heading(canvas, row, titles[i]);
    row += draw_table(canvas, row + 1, rows, tables[i], kNoCursor) + 2;
  }
  for (const std::string& problem : scene.model.problems) canvas.put(row++, 0, problem, Role::warning);
  return canvas;
}

}  // namespace neuron::screen
