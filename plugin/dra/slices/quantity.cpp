#include <array>
#include <limits>

#include "agent/base/parse.h"
#include "plugin/dra/slices/slice_text.h"

namespace neuron::plugin::dra {
namespace {

struct Unit {
  std::string_view suffix;
  std::int64_t factor = 1;
};
constexpr std::int64_t kKi = 1024;
// The greatest binary one first.
constexpr std::array<Unit, 6> kBinary = {{{"Ei", kKi* kKi* kKi* kKi* kKi* kKi},
                                          {"Pi", kKi* kKi* kKi* kKi* kKi},
                                          {"Ti", kKi* kKi* kKi* kKi},
                                          {"Gi", kKi* kKi* kKi},
                                          {"Mi", kKi* kKi},
                                          {"Ki", kKi}}};
constexpr std::array<Unit, 7> kDecimal = {{{"", 1},
                                           {"k", 1'000},
                                           {"M", 1'000'000},
                                           {"G", 1'000'000'000},
                                           {"T", 1'000'000'000'000},
                                           {"P", 1'000'000'000'000'000},
                                           {"E", 1'000'000'000'000'000'000}}};

std::optional<std::int64_t> times(std::int64_t value, std::int64_t factor) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(value, factor, &product)) return std::nullopt;
  return product;
}

// Of "e3", "E18": 10 to that.
std::optional<std::int64_t> power_of(std::string_view suffix) {
  constexpr int kMaxPower = 18;
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  const auto power = parse_int(suffix.substr(1), 0, kMaxPower);
  if (!power || suffix[1] == ' ') return std::nullopt;
  std::int64_t factor = 1;
  for (int i = 0; i < *power; ++i) factor *= 10;
  return factor;
}

std::optional<std::int64_t> factor_of(std::string_view suffix) {
  for (const Unit& unit : kDecimal) {
    if (suffix == unit.suffix) return unit.factor;
  }
  for (const Unit& unit : kBinary) {
    if (suffix == unit.suffix) return unit.factor;
  }
  return power_of(suffix);
}

}  // namespace

std::optional<std::int64_t> parse_quantity(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("+-0123456789"), text.size());
  const std::string_view number = text.substr(0, digits), suffix = text.substr(digits);
  if (number.empty() || number.front() == '+') return std::nullopt;
  const auto value = parse_i64(number);
  if (!value) return std::nullopt;
  constexpr std::int64_t kMilli = 1000;
  if (suffix == "m") return *value % kMilli == 0 ? std::optional(*value / kMilli) : std::nullopt;
  const auto factor = factor_of(suffix);
  return factor ? times(*value, *factor) : std::nullopt;
}

std::string quantity_text(std::int64_t value) {
  for (const Unit& unit : kBinary) {
    if (value != 0 && value % unit.factor == 0) return std::to_string(value / unit.factor) + std::string(unit.suffix);
  }
  return std::to_string(value);
}

}  // namespace neuron::plugin::dra
