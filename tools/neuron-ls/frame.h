#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// What --watch writes to a terminal. Pure functions over text; the sequences are those every terminal of the last
// decades knows (ECMA-48, and xterm's alternate screen).
namespace neuron::ls {

// Enters the alternate screen, hides the cursor, cuts long lines at the right edge; and back.
inline constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l";
inline constexpr std::string_view kLeaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l";

// One picture in place of the last, without flicker: `status` in the first line, then as many lines of `text` as fit
// in `rows`; when some do not, the last line says how many. `rows` 0: unknown, all lines.
[[nodiscard]] std::string frame(std::string_view status, std::string_view text, std::size_t rows);

}  // namespace neuron::ls
