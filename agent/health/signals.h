#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "agent/health/reasons.h"
#include "agent/model/host_scan.h"

// The table of the driver's signal files (docs/reference/driver.md#health-signals): path, drivers and families that
// have them, meaning, weight for health, and reason (health/reasons.h). The reader, the health policy, the checks and
// docs/health.md use it. Pure.
namespace neuron::health {

// Version of the Neuron driver without its build number.
struct DriverRelease {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend auto operator<=>(const DriverRelease&, const DriverRelease&) = default;
};

// "2.30.2.0" -> 2.30.2; nullopt for other text, such as "2.x.8072.0" (Bottlerocket) and "".
[[nodiscard]] std::optional<DriverRelease> parse_release(std::string_view version);

// sysfs layout unknown from this release on (docs/reference/driver.md#driver-versions).
inline constexpr DriverRelease kFilesMoved{2, 31, 7};

// Sets of device families, a bit each.
using Families = unsigned;
[[nodiscard]] constexpr Families family_bit(model::Family family) {
  return 1U << static_cast<unsigned>(family);
}

// The drivers and families that have a file.
struct Lifetime {
  DriverRelease since;                                     // the first driver that has it
  DriverRelease until{999, 0, 0};                          // the first one without it
  Families families = ~0U;                                 // families that certainly have it
  Families perhaps = 0;                                    // families that may have it
  model::DriverLayout layout{model::DriverLayout::stats};  // the layout that its presence proves
};

enum class SignalKind {
  ecc,         // 16-bit count; 65535, all ones, is for the health policy to interpret
  hbm,         // of up to four 16-bit registers: a count or their sum (HbmForm)
  counter,     // any decimal number
  health,      // a counter that may say device_unreachable instead
  heartbeat,   // 0..255, may say device_unreachable
  components,  // comma list, may say device_unreachable
  reset,       // 0..2, readable by root only
};

// Whether a verdict rests on a file: without a value from it, health is unknown where the file must be.
enum class Weight { required, optional };

// One file of a device. Passive data.
struct DeviceSignal {
  std::string_view path;  // below the device's directory
  SignalKind kind = SignalKind::counter;
  std::optional<std::uint64_t> model::DeviceSignals::*value = nullptr;  // null for components and reset
  Lifetime life;
  Weight weight = Weight::optional;
  const Reason* reason = nullptr;  // null where its value by itself is no fault. A count is one when it is not 0
  std::string_view what{};         // of a count that is a fault: the noun, plural with "s"
  std::string_view meaning{};      // for docs/health.md
};

// Extent of a fault.
enum class Reach {
  core,    // that core; the other cores of its device stay healthy
  device,  // memory and data paths that all cores share
};

// One file of a core. Growth is a fault where `weight` is required.
struct CoreSignal {
  std::string_view path;  // below neuron_core<M>
  std::optional<std::uint64_t> model::CoreSignals::*value = nullptr;
  Lifetime life;
  Weight weight = Weight::optional;
  const Reason* reason = nullptr;  // set where `weight` is required
  Reach reach = Reach::device;
  std::string_view meaning{};  // for docs/health.md
};

// The gravest first. Static lifetime, any thread.
[[nodiscard]] std::span<const DeviceSignal> device_signals();
[[nodiscard]] std::span<const CoreSignal> core_signals();

// Whether the file is of health_status/, which shows the last reading of a thread of the driver.
[[nodiscard]] bool is_cached(const DeviceSignal& signal);

// Whether the device gave a value for that file.
[[nodiscard]] bool has_value(const model::NeuronDevice& device, const DeviceSignal& signal);
// Whether any of its cores did.
[[nodiscard]] bool has_value(const model::NeuronDevice& device, const CoreSignal& signal);

// The driver by its version text; where that is no number, the first one with all the files that `devices` show.
// nullopt: unknown.
[[nodiscard]] std::optional<DriverRelease> release_of(std::string_view version,
                                                      std::span<const model::NeuronDevice> devices);

// Whether that driver certainly has the file for such a family, or may have it. An unknown family certainly has none;
// an unknown driver may have all.
[[nodiscard]] bool must_be_there(const Lifetime& life, std::optional<DriverRelease> release,
                                 std::optional<model::Family> family);
[[nodiscard]] bool may_be_there(const Lifetime& life, std::optional<DriverRelease> release,
                                std::optional<model::Family> family);

// Format of HBM error counts, by driver (docs/reference/driver.md#hbm-counts). A register per stack holds
// both: bits 15:12 uncorrectable errors, 11:0 repairable ones.
enum class HbmForm {
  packed,  // one file shows the sum of the registers, the other 0
  split,   // a file for each count
  either,  // packed or a plain count of uncorrectable errors, depending on firmware that sysfs does not show
};

// `either` where driver or family is unknown.
[[nodiscard]] HbmForm hbm_form(std::optional<DriverRelease> release, std::optional<model::Family> family);

// Replaces the numbers of mem_ecc_uncorrected and mem_ecc_repairable_uncorrected by the counts; a packed number stays
// in `hbm_packed`. A number of `either` form is unpacked only from 4096 on, so that a smaller one counts as
// uncorrectable, the graver reading. All ones stay as they are (is_all_ones).
void unpack_hbm_counts(model::DeviceSignals& signals, HbmForm form);

// Whether a count is the sum of one to four 16-bit registers that read ones: 65535, 131070, 196605 or 262140.
[[nodiscard]] bool is_all_ones(std::uint64_t count);

// Whether both HBM counts come from registers that read ones on Trainium2 and 3: 60 and 16380. On the others they would
// be 30 and 0, which may be real counts.
[[nodiscard]] bool hbm_reads_ones(const model::DeviceSignals& signals);

}  // namespace neuron::health
