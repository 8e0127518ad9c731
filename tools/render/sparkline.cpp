#include "tools/render/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace neuron::render {
namespace {

constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 10> kDigits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// Step 0 is nothing at all; every other value rises above it.
std::size_t step(double value, double full, std::size_t steps) {
  if (!(value > 0) || !(full > 0)) return 0;
  const double top = static_cast<double>(steps - 1);
  return static_cast<std::size_t>(std::clamp(std::ceil(value / full * top - 0.5), 0.0, top));
}

}  // namespace

std::string level(std::optional<double> value, double full, Charset charset) {
  if (!value || std::isnan(*value)) return "?";
  if (charset == Charset::utf8) return std::string(kBlocks[step(*value, full, kBlocks.size())]);
  return std::string(kDigits[step(*value, full, kDigits.size())]);
}

std::string sparkline(std::span<const std::optional<double>> values, int width, double full, Charset charset) {
  const auto cells = static_cast<std::size_t>(std::max(width, 0));
  const auto shown = values.last(std::min(cells, values.size()));
  double top = full;
  if (!(full > 0)) {
    top = 0;
    for (const auto& value : shown) top = std::max(top, value.value_or(0));
  }
  std::string text(cells - shown.size(), ' ');
  for (const auto& value : shown) text += value ? level(value, top, charset) : " ";
  return text;
}

}  // namespace neuron::render
