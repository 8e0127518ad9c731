#include "tools/render/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace neuron::render {
namespace {

bool starts_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
}

// Bytes of the first `count` code points.
std::size_t prefix_bytes(std::string_view text, std::size_t count) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (starts_code_point(text[i]) && ++seen > count) return i;
  }
  return text.size();
}

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

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "…";

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

// The code point at the beginning of `text`, which is not empty.
CodePoint first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = value << 6U | (byte(i) & 0x3fU);
  }
  const bool shortest = value >= (bytes == 2 ? 0x80U : bytes == 3 ? 0x800U : 0x10000U);
  return {value, shortest ? bytes : 1, shortest};
}

bool xml_allows(std::uint32_t value) {
  if (value < 0x20) return value == '\t' || value == '\n' || value == '\r';
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  const bool control = value >= 0x7f && value <= 0x9f;  // allowed, discouraged, and never meant
  return value <= 0x10ffff && !surrogate && !control && (value & 0xfffeU) != 0xfffeU;
}

void append_escaped(std::string& out, std::string_view character) {
  constexpr std::string_view kMarkup = "&<>\"'";
  constexpr std::array<std::string_view, kMarkup.size()> kReferences = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
  const std::size_t at = kMarkup.find(character.front());
  out += at == std::string_view::npos ? character : kReferences[at];
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_code_point));
}

std::string shorten(std::string_view text, std::size_t max_width) {
  constexpr std::string_view kDots = "...";
  if (display_width(text) <= max_width) return std::string(text);
  return std::string(text.substr(0, prefix_bytes(text, max_width - kDots.size()))).append(kDots);
}

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
  const bool ruled_groups = std::ranges::any_of(groups_, [](const auto& g) { return g.size() > 1; });
  std::string text = ruler + header_line(upper, widths) + header_line(lower, widths) + ruler;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (const Row& row : groups_[i]) text += row_text(row, widths, colour);
    if (ruled_groups || i + 1 == groups_.size()) text += ruler;
  }
  return text;
}

std::string xml_text(std::string_view text, std::size_t max_characters) {
  std::string out;
  out.reserve(std::min(text.size(), 4 * max_characters) + 16);
  for (std::size_t characters = 0; !text.empty(); ++characters) {
    if (characters == max_characters) return out.append(kEllipsis);
    const CodePoint point = first_of(text);
    if (point.valid && xml_allows(point.value)) {
      append_escaped(out, text.substr(0, point.bytes));
    } else {
      out += kReplacement;
    }
    text.remove_prefix(point.bytes);
  }
  return out;
}

std::size_t characters_in(int width, int size) {
  constexpr int kHundredthsOfSize = 63;
  return static_cast<std::size_t>(std::max(1, 100 * width / (kHundredthsOfSize * std::max(1, size))));
}

std::string fit(std::string_view text, int width, int size) {
  const std::size_t most = characters_in(width, size);
  if (display_width(text) <= most) return std::string(text);
  return std::string(text.substr(0, prefix_bytes(text, most - 1))).append(kEllipsis);
}

}  // namespace neuron::render
