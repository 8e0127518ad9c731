#include "agent/model/device.h"

#include <array>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::model {
namespace {

constexpr std::array<std::pair<Family, std::string_view>, 5> kFamilyNames = {{
    {Family::inferentia, "Inferentia"},
    {Family::inferentia2, "Inferentia2"},
    {Family::trainium1, "Trainium1"},
    {Family::trainium2, "Trainium2"},
    {Family::trainium3, "Trainium3"},
}};

std::optional<std::uint32_t> parse_field(std::string_view text, std::size_t digits, std::uint32_t max) {
  if (text.size() != digits || text.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return {};
  const auto value = parse_hex(text);
  if (!value || *value > max) return std::nullopt;
  return value;
}

}  // namespace

std::string to_string(const Bdf& bdf) {
  std::string text;
  text.reserve(16);
  const auto append = [&text](unsigned value, unsigned digits) {
    while (digits < 8 && value >> (4 * digits) != 0) ++digits;
    while (digits-- > 0) text += "0123456789abcdef"[value >> (4 * digits) & 0xfU];
  };
  append(bdf.domain, 4);
  text += ':';
  append(bdf.bus, 2);
  text += ':';
  append(bdf.slot, 2);
  text += '.';
  append(bdf.function, 1);
  return text;
}

std::optional<Bdf> parse_bdf(std::string_view text) {
  std::uint32_t domain = 0;
  if (text.size() == 12) {
    const auto parsed = parse_field(text.substr(0, 4), 4, 0xffff);
    if (!parsed || text[4] != ':') return std::nullopt;
    domain = *parsed;
    text.remove_prefix(5);
  }
  if (text.size() != 7 || text[2] != ':' || text[5] != '.') return std::nullopt;
  const auto bus = parse_field(text.substr(0, 2), 2, 0xff);
  const auto slot = parse_field(text.substr(3, 2), 2, 0x1f);
  const auto function = parse_field(text.substr(6, 1), 1, 7);
  if (!bus || !slot || !function) return std::nullopt;
  return Bdf{domain, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*slot),
             static_cast<std::uint8_t>(*function)};
}

std::string_view to_string(Family family) {
  for (const auto& [value, name] : kFamilyNames) {
    if (value == family) return name;
  }
  return "";
}

std::optional<Family> parse_family(std::string_view device_name) {
  for (const auto& [value, name] : kFamilyNames) {
    if (name == device_name) return value;
  }
  return std::nullopt;
}

std::optional<Family> family_of_pci_id(std::uint16_t device_id) {
  switch (device_id) {
    case 0x7064:
    case 0x7065:
    case 0x7066:
    case 0x7067:
      return Family::inferentia;
    case 0x7164:
      return Family::trainium1;
    case 0x7264:
      return Family::inferentia2;
    case 0x7364:
      return Family::trainium2;
    case 0x7564:
    case 0x7565:
      return Family::trainium3;
    default:
      return std::nullopt;
  }
}

std::string describe_problem(const ReadProblem& problem) {
  if (problem.kind == ProblemKind::absent_neighbours) return "names missing devices: " + problem.detail;
  return problem.detail;
}

std::string sentence(const ReadProblem& problem) {
  return problem.path.empty() ? describe_problem(problem) : problem.path + ": " + describe_problem(problem);
}

std::vector<std::string> sentences(const std::vector<ReadProblem>& problems) {
  std::vector<std::string> lines;
  lines.reserve(problems.size());
  for (const ReadProblem& problem : problems) lines.push_back(sentence(problem));
  return lines;
}

}  // namespace neuron::model
