#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Widths of UTF-8 text in terminal cells, one per code point (ids, paths and commands hold nothing wider in practice).
// Continuation bytes count nothing. Pure functions, any thread.
namespace neuron::render {

[[nodiscard]] std::size_t display_width(std::string_view text);

// `text` when it fits in `max_width` cells, else its first max_width - 3 code points and "...". `max_width` is at
// least 3.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t max_width);

}  // namespace neuron::render
