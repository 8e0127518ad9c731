#include "agent/health/hbm_counts.h"

#include <algorithm>
#include <array>

namespace neuron::health {
namespace {

using model::Family;

constexpr Families kV2 = family_bit(Family::trainium1) | family_bit(Family::inferentia2);
constexpr Families kFromV3 = family_bit(Family::trainium2) | family_bit(Family::trainium3);
constexpr DriverRelease kFirstEcc{2, 14, 5};
constexpr DriverRelease kFirstSplit{2, 26, 0};

constexpr std::array kForms = {
    HbmFormOfDriver{.since = kFirstEcc, .until = kFirstSplit, .families = kFromV3, .form = HbmForm::packed},
    HbmFormOfDriver{.since = kFirstEcc, .until = kFirstSplit, .families = kV2, .form = HbmForm::either},
    HbmFormOfDriver{.since = kFirstSplit, .families = kV2 | kFromV3, .form = HbmForm::split},
};

constexpr unsigned kRepairableBits = 12;
constexpr std::uint64_t kRepairableMask = (1U << kRepairableBits) - 1;

}  // namespace

std::span<const HbmFormOfDriver> hbm_forms() {
  return kForms;
}

HbmForm hbm_form(std::optional<DriverRelease> release, std::optional<Family> family) {
  if (!release || !family) return HbmForm::either;
  const auto* const found = std::find_if(kForms.begin(), kForms.end(), [&](const HbmFormOfDriver& row) {
    return *release >= row.since && *release < row.until && (row.families & family_bit(*family)) != 0;
  });
  return found == kForms.end() ? HbmForm::either : found->form;
}

void unpack_hbm_counts(model::DeviceSignals& signals, HbmForm form) {
  if (form == HbmForm::split) return;
  const bool as_repairable = signals.mem_ecc_repairable_uncorrected.value_or(0) != 0;
  const std::uint64_t value =
      as_repairable ? *signals.mem_ecc_repairable_uncorrected : signals.mem_ecc_uncorrected.value_or(0);
  if (value == 0 || is_all_ones(value)) return;
  if (form == HbmForm::either && value <= kRepairableMask) return;
  signals.hbm_packed = {value, as_repairable};
  signals.mem_ecc_uncorrected = value >> kRepairableBits;
  signals.mem_ecc_repairable_uncorrected = value & kRepairableMask;
}

bool is_all_ones(std::uint64_t count) {
  constexpr std::uint64_t kOnes = 65535;
  constexpr std::uint64_t kMaxRegisters = 4;
  return count != 0 && count % kOnes == 0 && count / kOnes <= kMaxRegisters;
}

bool hbm_reads_ones(const model::DeviceSignals& signals) {
  constexpr std::uint64_t kUncorrectable = 4 * 15;
  constexpr std::uint64_t kRepairable = 4 * 4095;
  return signals.mem_ecc_uncorrected == kUncorrectable && signals.mem_ecc_repairable_uncorrected == kRepairable;
}

}  // namespace neuron::health
