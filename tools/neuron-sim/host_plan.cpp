#include "tools/neuron-sim/host_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

struct PlatformName {
  std::string_view instance_type;
  Platform platform;
  int first_minor;
};

// docs/reference/driver.md#platform-classes
constexpr std::array<PlatformName, 16> kPlatformNames = {{
    {"trn2p.48xlarge", Platform::ultraserver, 0},
    {"trn2eu.48xlarge", Platform::ultraserver, 23},
    {"trn2u.48xlarge", Platform::ultraserver, 0},
    {"trn2u-ac.24xlarge", Platform::ultraserver, 25},
    {"trn3p.48xlarge", Platform::ultraserver, 26},
    {"trn2es.48xlarge", Platform::pds, 25},
    {"trn3s.48xlarge", Platform::pds, 25},
    {"trn3-dev0.48xlarge", Platform::pds, 25},
    {"trn3.48xlarge", Platform::pds, 30},
    {"trn3-dev1.48xlarge", Platform::pds, 30},
    {"trn3s-es.48xlarge", Platform::pds, 30},
    {"trn3sn.48xlarge", Platform::pds, 30},
    {"trn3sn-es.48xlarge", Platform::pds, 30},
    {"trn2en.24xlarge", Platform::max, 30},
    {"trn3e.24xlarge", Platform::max, 30},
    {"trn3e-dev0.24xlarge", Platform::max, 30},
}};

Result<int> minor_of(std::string_view version) {
  const auto parts = split(version, '.');
  const bool shaped = parts.size() >= 3 && parts[0] == "2" && std::ranges::none_of(parts, &std::string_view::empty);
  const auto minor = shaped ? parse_int(parts[1], 0, 999) : std::nullopt;
  if (minor) return *minor;
  if (shaped && parts[1] == "x") return 26;  // Bottlerocket
  return fail(ErrorCode::invalid_argument, "driver version \"" + printable(version) +
                                               "\" is not like 2.30.2.0 (a module version of aws-neuronx-dkms)");
}

}  // namespace

Result<Part> parse_part(std::string_view text) {
  if (text == "efa") return Part::efa;
  if (text == "uverbs") return Part::uverbs;
  if (text == "ioctl") return Part::ioctl;
  if (text == "driver") return Part::driver;
  return fail(ErrorCode::invalid_argument,
              "cannot leave out \"" + printable(text) + "\": the parts are efa, uverbs, ioctl, driver");
}

Result<UltraServerPlan> parse_ultraserver(std::string_view text) {
  using State = UltraServerPlan::State;
  if (text == "busy") return UltraServerPlan{State::busy, 0, -1};
  if (text == "alone") return UltraServerPlan{State::alone, 0, -1};
  const auto parts = split(text, ':');
  const int nodes = parts.empty() ? 0 : parse_int(parts[0], 2, 4).value_or(0);
  const auto node = parts.size() == 2 ? parse_int(parts[1], 0, nodes - 1) : std::optional(0);
  if ((nodes != 2 && nodes != 4) || !node || parts.size() > 2) {
    return fail(ErrorCode::invalid_argument,
                "UltraServer \"" + printable(text) + "\" is not busy, alone, 2 or 4, or like 4:3 for node 3 of 4");
  }
  return UltraServerPlan{State::linked, nodes, *node};
}

Result<DriverGeneration> generation_of(std::string_view version) {
  TRY_ASSIGN(const int minor, minor_of(version));
  if (minor < 21) {
    return fail(ErrorCode::invalid_argument,
                "driver " + std::string(version) + " is not simulated: the first is 2.21.37");
  }
  return DriverGeneration{minor};
}

Result<void> check_drives(const DriverGeneration& generation, model::Family family) {
  if (family == model::Family::inferentia && generation.minor > 24) {
    return fail(ErrorCode::invalid_argument,
                "inf1 needs driver 2.24.*, the last with Inferentia 1 (use --driver 2.24.7.0)");
  }
  if (family == model::Family::trainium3 && generation.minor < 25) {
    return fail(ErrorCode::invalid_argument, "trn3 needs driver 2.25.4 or later (use --driver 2.26.5.0)");
  }
  return {};
}

Platform platform_of(std::string_view instance_type, const DriverGeneration& generation) {
  for (const auto& entry : kPlatformNames) {
    if (entry.instance_type == instance_type && generation.minor >= entry.first_minor) return entry.platform;
  }
  return Platform::standard;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& names) {
  constexpr std::size_t kMaxEdits = 4;
  constexpr std::size_t kMaxMatches = 5;
  constexpr std::size_t kMaxText = 64;
  if (text.empty() || text.size() > kMaxText) return "";
  const auto stem = text.substr(0, text.find('.'));
  std::multimap<std::size_t, std::string> ranked;  // by edits, then in the order of `names`
  for (const auto& name : names) {
    const bool same_stem = stem.size() > 1 && stem == std::string_view(name).substr(0, name.find('.'));
    const std::size_t edits = edit_distance(text, name);
    if (same_stem || edits <= std::min(kMaxEdits, text.size() / 2)) ranked.emplace(edits, name);
  }
  std::string phrase;
  for (std::size_t shown = 0; const auto& [edits, name] : ranked) {
    if (shown++ < kMaxMatches) phrase += (phrase.empty() ? "; did you mean " : ", ") + name;
  }
  return phrase.empty() ? phrase : phrase + "?";
}

}  // namespace neuron::sim
