#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Text inside an SVG document. Pure functions, any thread.
namespace neuron::render {

// `text` as the content of an element or of an attribute in quotes: the five characters of markup as references, and
// U+FFFD for all that XML 1.0 does not allow (control characters, invalid UTF-8, U+FFFE and U+FFFF). At most
// `max_characters` code points, then "…". Foreign text needs nothing else.
[[nodiscard]] std::string xml_text(std::string_view text, std::size_t max_characters = 400);

// How many characters of a font of `size` pixels fit in `width` pixels, at least 1. Reckoned with a wide sans serif,
// since nobody knows the reader's fonts.
[[nodiscard]] std::size_t characters_in(int width, int size);

// `text`, not escaped, cut with "…" where it is longer than what fits.
[[nodiscard]] std::string fit(std::string_view text, int width, int size);

}  // namespace neuron::render
