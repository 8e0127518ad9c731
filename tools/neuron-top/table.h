#pragma once

#include <string>
#include <vector>

#include "tools/render/canvas.h"

namespace neuron::top {

using render::Role;

enum class Align { left, right };

struct TableColumn {
  std::string title;
  Align align = Align::left;
  int priority = 0;      // columns with the highest go first when there is too little room; 0 always stays
  bool stretch = false;  // takes what room is left; its texts are cut
};

struct TableCell {
  std::string text;
  Role role = Role::plain;
};

struct TableRow {
  std::string key;  // unique in its table, stays the same from sample to sample
  std::vector<TableCell> cells;
  std::string detail = {};  // what the cells have no room for; shown below the table while the row is selected
};

// What a panel shows: rows of cells below a line of titles. Passive.
struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::string note;  // shown where there are no rows, or below them; "" = nothing
};

inline constexpr int kNoCursor = -1;

// Draws titles and as many rows as fit into `height` lines from `row` on, those around the cursor when not all do; a
// last line then says how many there are. Returns the number of lines used, at most `height`.
int draw_table(render::Canvas& canvas, int row, int height, const Table& table, int cursor);

// Lines that the whole table needs.
[[nodiscard]] int table_height(const Table& table);

}  // namespace neuron::top
