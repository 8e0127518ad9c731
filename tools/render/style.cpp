#include "tools/render/style.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace neuron::render {
namespace {

std::string lower_alnum(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

bool has_no_colours(std::string_view term) {
  if (term.empty() || term == "dumb" || term == "unknown") return true;
  if (term.starts_with("vt")) return !term.ends_with("color");  // vt100, vt220
  return term.ends_with("-m") || term.ends_with("-mono");
}

ColourDepth colour_of(const TerminalFacts& facts) {
  if (!facts.is_terminal || facts.no_color || has_no_colours(facts.term)) return ColourDepth::none;
  const bool many = facts.term.find("256color") != std::string::npos || facts.term.ends_with("-direct") ||
                    facts.colorterm == "truecolor" || facts.colorterm == "24bit";
  return many ? ColourDepth::ansi256 : ColourDepth::ansi16;
}

// Colours per role, both palettes. The 16-colour numbers are those of every terminal: 1 red, 2 green, 3 yellow, 4 blue,
// 6 cyan, 7 white.
struct Colours {
  Role role;
  Paint sixteen;
  Paint many;
};

constexpr std::optional<int> kNone = std::nullopt;

constexpr std::array<Colours, kRoles> kPalette = {{
    {Role::plain, {}, {}},
    {Role::title, {kNone, kNone, true}, {kNone, kNone, true}},
    {Role::section, {0, 6}, {16, 37}},
    {Role::label, {6, kNone}, {109, kNone}},
    {Role::dim, {kNone, kNone}, {245, kNone}},
    {Role::good, {2, kNone}, {71, kNone}},
    {Role::system, {1, kNone}, {167, kNone}},
    {Role::warning, {3, kNone, true}, {179, kNone}},
    {Role::bad, {1, kNone, true}, {203, kNone, true}},
    {Role::cursor, {7, 1}, {231, 124}},
    {Role::tab_selected, {2, kNone, true, true}, {16, 71, true}},
    {Role::bar_empty, {kNone, kNone}, {240, kNone}},
    {Role::key, {kNone, kNone, true}, {kNone, kNone, true}},
}};

constexpr bool palette_is_in_order() {
  for (std::size_t i = 0; i < kPalette.size(); ++i) {
    if (static_cast<std::size_t>(kPalette[i].role) != i) return false;
  }
  return true;
}
static_assert(palette_is_in_order());

std::string colour_code(ColourDepth depth, char layer, int colour) {
  return std::string(";") + layer + (depth == ColourDepth::ansi16 ? "" : "8;5;") + std::to_string(colour);
}

}  // namespace

Style choose_style(const TerminalFacts& facts) {
  Style style;
  style.colour = colour_of(facts);
  const bool poor_font =
      facts.is_terminal && (facts.term.empty() || facts.term == "dumb" || facts.term.starts_with("linux"));
  if (lower_alnum(facts.codeset) == "utf8" && !poor_font) style.charset = Charset::utf8;
  return style;
}

Paint paint_of(ColourDepth depth, Role role) {
  const Colours& colours = kPalette[static_cast<std::size_t>(role)];
  if (depth == ColourDepth::ansi256) return colours.many;
  if (depth == ColourDepth::ansi16) return colours.sixteen;
  Paint plain;
  plain.bold = role == Role::title || role == Role::section || role == Role::bad || role == Role::key;
  plain.reverse = role == Role::cursor || role == Role::tab_selected;
  return plain;
}

std::string paint_begin(ColourDepth depth, Role role) {
  if (depth == ColourDepth::none) return "";
  const Paint paint = paint_of(depth, role);
  if (paint == Paint{}) return "";
  std::string codes = "0";
  if (paint.bold) codes += ";1";
  if (paint.reverse) codes += ";7";
  if (paint.foreground) codes += colour_code(depth, '3', *paint.foreground);
  if (paint.background) codes += colour_code(depth, '4', *paint.background);
  return "\x1b[" + codes + 'm';
}

std::string painted(ColourDepth depth, Role role, std::string_view text) {
  const std::string begin = paint_begin(depth, role);
  return begin.empty() ? std::string(text) : begin + std::string(text) + std::string(kPaintEnd);
}

}  // namespace neuron::render
