#include "tools/neuron-sim/driver_generation.h"

#include <algorithm>
#include <array>
#include <string>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

constexpr int kFirstSimulated = 21;
constexpr int kBottlerocketMinor = 26;

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
  const bool shaped = parts.size() >= 3 && parts[0] == "2" &&
                      std::none_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); });
  const auto minor = shaped ? parse_int(parts[1], 0, 999) : std::nullopt;
  if (minor) return *minor;
  if (shaped && parts[1] == "x") return kBottlerocketMinor;
  return fail(ErrorCode::invalid_argument, "driver version \"" + printable(version) +
                                               "\" is not like 2.30.2.0 (a module version of aws-neuronx-dkms)");
}

}  // namespace

Result<DriverGeneration> generation_of(std::string_view version) {
  TRY_ASSIGN(const int minor, minor_of(version));
  if (minor < kFirstSimulated) {
    return fail(ErrorCode::invalid_argument,
                "driver " + std::string(version) + " is not simulated: the first is 2.21.37");
  }
  DriverGeneration generation;
  generation.minor = minor;
  generation.known_layout = minor <= 30;
  generation.readable_counts = minor >= 28;
  generation.health = minor >= 30   ? HealthFiles::components
                      : minor >= 28 ? HealthFiles::error_counts
                                    : HealthFiles::none;
  generation.repairable_ecc = minor >= 23;
  generation.tensor_counters = minor >= 23;
  generation.valid_without_power = minor >= 25;
  generation.raw_power = minor >= 29;
  generation.corrected_ecc = minor >= 30;
  generation.firmware_files = minor >= 30;
  generation.class_files_by_size = minor >= 23;
  generation.platform_class_files = minor >= 30;
  return generation;
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

}  // namespace neuron::sim
