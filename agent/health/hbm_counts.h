#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "agent/health/signals.h"

// How each driver prints the error counts of HBM (docs/reference/driver.md#hbm-counts). A register per stack holds
// both: bits 15:12 uncorrectable errors, 11:0 repairable ones. Pure.
namespace neuron::health {

enum class HbmForm {
  packed,  // one file shows the sum of the registers, the other 0
  split,   // a file for each count
  either,  // packed or a plain count of uncorrectable errors, depending on firmware that sysfs does not show
};

struct HbmFormOfDriver {
  DriverRelease since;
  DriverRelease until{999, 0, 0};  // the first one that prints another form
  Families families = 0;
  HbmForm form = HbmForm::either;
};

// Static lifetime, any thread.
[[nodiscard]] std::span<const HbmFormOfDriver> hbm_forms();

// `either` where driver or chip is unknown.
[[nodiscard]] HbmForm hbm_form(std::optional<DriverRelease> release, std::optional<model::Family> family);

// Replaces the texts of mem_ecc_uncorrected and mem_ecc_repairable_uncorrected by the counts; a packed number stays in
// `hbm_packed`. A number of `either` form is unpacked only where it is 4096 or more, so that a smaller one counts as
// uncorrectable, the graver reading. A value of all ones is left as it is (is_all_ones).
void unpack_hbm_counts(model::DeviceSignals& signals, HbmForm form);

// Whether a count is what one or more 16-bit registers that read ones add up to: 65535, 131070, 196605 or 262140.
[[nodiscard]] bool is_all_ones(std::uint64_t count);

// Whether both HBM counts are what registers that read ones split into on Trainium2 and 3: 60 and 16380. On the others
// it is 30 and 0, which a count may be as well.
[[nodiscard]] bool hbm_reads_ones(const model::DeviceSignals& signals);

}  // namespace neuron::health
