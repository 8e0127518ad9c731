#include "tools/render/text_table.h"

#include <algorithm>
#include <utility>

#include "tools/render/text.h"

namespace neuron::render {
namespace {

using Widths = std::vector<std::size_t>;

std::string left_aligned(const std::string& text, std::size_t width) {
  return text + std::string(width - display_width(text), ' ');
}

std::string centred(const std::string& text, std::size_t width) {
  const std::size_t slack = width - display_width(text);
  return std::string(slack / 2, ' ') + text + std::string(slack - slack / 2, ' ');
}

std::string rule(const Widths& widths) {
  std::string line = "+";
  for (const std::size_t width : widths) line += std::string(width + 2, '-') + '+';
  return line + '\n';
}

// "| a | b |" with `align` applied to each text and its column's width.
template <typename Align>
std::string line_of(const TextTable::Row& texts, const Widths& widths, Align align) {
  std::string line = "|";
  for (std::size_t i = 0; i < widths.size(); ++i) line += ' ' + align(texts[i], widths[i]) + " |";
  return line + '\n';
}

}  // namespace

TextTable::TextTable(std::vector<Header> headers) : headers_(std::move(headers)) {}

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

std::string TextTable::to_string() const {
  const Widths widths = column_widths();
  Row upper;
  Row lower;
  for (const Header& header : headers_) {
    upper.push_back(header.upper);
    lower.push_back(header.lower);
  }
  const std::string ruler = rule(widths);
  const bool ruled_groups = std::any_of(groups_.begin(), groups_.end(), [](const auto& g) { return g.size() > 1; });
  std::string text = ruler + line_of(upper, widths, centred) + line_of(lower, widths, centred) + ruler;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (const Row& row : groups_[i]) text += line_of(row, widths, left_aligned);
    if (ruled_groups || i + 1 == groups_.size()) text += ruler;
  }
  return text;
}

}  // namespace neuron::render
