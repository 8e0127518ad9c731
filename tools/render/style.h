#pragma once

#include <optional>
#include <string>
#include <string_view>

// Style of output, decided once from facts that the caller collects, so that all programs decide the same. Pure.
namespace neuron::render {

enum class ColourDepth { none, ansi16, ansi256 };
enum class Charset { ascii, utf8 };

// Facts about the output, collected by the program; nothing here reads the environment.
struct TerminalFacts {
  bool is_terminal = false;  // isatty() of the output
  bool no_color = false;     // NO_COLOR is set and not empty (no-color.org)
  std::string term;          // TERM; "" when unset
  std::string colorterm;     // COLORTERM; "" when unset
  std::string codeset;       // nl_langinfo(CODESET) after setlocale(LC_CTYPE, ""): "UTF-8", "ANSI_X3.4-1968"
};

struct Style {
  ColourDepth colour = ColourDepth::none;
  Charset charset = Charset::ascii;
  friend bool operator==(const Style&, const Style&) = default;
};

// Colour only on a terminal that has colours, never with NO_COLOR. UTF-8 wherever the locale says so, except on the
// Linux console and dumb terminals, whose fonts lack the block characters.
[[nodiscard]] Style choose_style(const TerminalFacts& facts);

// The meaning of a piece of text; paint_of() gives its appearance.
enum class Role {
  plain,
  title,         // the first line
  section,       // headings
  label,         // names of rows and columns
  dim,           // less important
  good,          // healthy; the filled part of a bar; memory values
  system,        // the second part of a CPU bar
  warning,       // degraded, stale
  bad,           // unhealthy, errors
  cursor,        // the selected row
  tab_selected,  // the selected tab
  bar_empty,     // the rest of a bar
  key,           // a key in a help line
};
inline constexpr int kRoles = 13;

// Colours by their number in the palette of the depth (0-7, 0-255); nullopt = the terminal's own.
struct Paint {
  std::optional<int> foreground;
  std::optional<int> background;
  bool bold = false;
  bool reverse = false;
  friend bool operator==(const Paint&, const Paint&) = default;
};

// Without colour only bold and reverse are used, so that the cursor and the selected tab still differ.
[[nodiscard]] Paint paint_of(ColourDepth depth, Role role);

// The escape sequence that begins a role, "" where it looks like plain text or `depth` is none. A painted text ends
// with kPaintEnd.
[[nodiscard]] std::string paint_begin(ColourDepth depth, Role role);
inline constexpr std::string_view kPaintEnd = "\x1b[0m";

// `text` between the two sequences; unchanged where paint_begin is empty.
[[nodiscard]] std::string painted(ColourDepth depth, Role role, std::string_view text);

}  // namespace neuron::render
