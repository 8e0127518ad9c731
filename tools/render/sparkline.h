#pragma once

#include <optional>
#include <span>
#include <string>

#include "tools/render/style.h"

namespace neuron::render {

// One character for `value` between 0 and `full`: eight block heights in UTF-8, the digits 0 to 9 in ASCII. Zero is the
// lowest of them and not blank; nullopt and NaN give '?' (sparkline() shows nullopt as a blank instead).
[[nodiscard]] std::string level(std::optional<double> value, double full, Charset charset);

// The newest `width` values, oldest first, right-aligned: exactly `width` cells. Unknown values and missing history are
// blank. `full` is the height of the top; 0 or less takes the largest value shown.
[[nodiscard]] std::string sparkline(std::span<const std::optional<double>> values, int width, double full,
                                    Charset charset);

}  // namespace neuron::render
