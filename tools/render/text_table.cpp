#include "tools/render/text_table.h"

#include <algorithm>
#include <utility>

#include "tools/render/text.h"

namespace neuron::render {
namespace {

using Widths = std::vector<std::size_t>;

std::string centred(const std::string& text, std::size_t width) {
  const std::size_t slack = width - display_width(text);
  return std::string(slack / 2, ' ') + text + std::string(slack - slack / 2, ' ');
}

std::string rule(const Widths& widths) {
  std::string line = "+";
  for (const std::size_t width : widths) line += std::string(width + 2, '-') + '+';
  return line + '\n';
}

std::string header_line(const TextTable::Row& texts, const Widths& widths) {
  std::string line = "|";
  for (std::size_t i = 0; i < widths.size(); ++i) line += ' ' + centred(texts[i], widths[i]) + " |";
  return line + '\n';
}

}  // namespace

TextTable::TextTable(std::vector<Header> headers) : headers_(std::move(headers)), roles_(headers_.size(), nullptr) {}

void TextTable::paint_column(std::size_t column, RoleOf role_of) {
  if (column < roles_.size()) roles_[column] = role_of;
}

void TextTable::add_group(std::vector<Row> rows) {
  if (rows.empty()) return;
  for (Row& row : rows) row.resize(headers_.size());
  groups_.push_back(std::move(rows));
}

std::vector<std::size_t> TextTable::column_widths() const {
  Widths widths;
  for (const Header& header : headers_) {
    widths.push_back(std::max(display_width(header.upper), display_width(header.lower)));
  }
  for (const auto& group : groups_) {
    for (const Row& row : group) {
      for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  return widths;
}

std::string TextTable::row_text(const Row& row, const Widths& widths, ColourDepth colour) const {
  std::string line = "|";
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string blanks(widths[i] - display_width(row[i]), ' ');
    line += ' ' + (roles_[i] != nullptr ? painted(colour, roles_[i](row[i]), row[i]) : row[i]) + blanks + " |";
  }
  return line + '\n';
}

std::string TextTable::to_string(ColourDepth colour) const {
  const Widths widths = column_widths();
  Row upper;
  Row lower;
  for (const Header& header : headers_) {
    upper.push_back(header.upper);
    lower.push_back(header.lower);
  }
  const std::string ruler = rule(widths);
  const bool ruled_groups = std::any_of(groups_.begin(), groups_.end(), [](const auto& g) { return g.size() > 1; });
  std::string text = ruler + header_line(upper, widths) + header_line(lower, widths) + ruler;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (const Row& row : groups_[i]) text += row_text(row, widths, colour);
    if (ruled_groups || i + 1 == groups_.size()) text += ruler;
  }
  return text;
}

}  // namespace neuron::render
