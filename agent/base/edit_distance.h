#pragma once

#include <cstddef>
#include <string_view>

namespace neuron {

// How many bytes have to be put in, left out or replaced to make one text of the other (Levenshtein). Takes time of
// the product of their lengths, memory of the second's: callers bound both. Pure.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace neuron
