#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "agent/health/reasons.h"
#include "agent/model/host_scan.h"

// The one table of the driver's signal files (docs/reference/driver.md#health-signals): where they are, in which
// drivers and on which chips, what they mean, whether health rests on them, and the reason they give (health/reasons.h
// has what to do). The reader, the health policy, the checks and docs/health.md all go by it. Pure.
namespace neuron::health {

// Version of the Neuron driver without its build number.
struct DriverRelease {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend auto operator<=>(const DriverRelease&, const DriverRelease&) = default;
};

// "2.30.2.0" -> 2.30.2; nullopt for what is no number, such as "2.x.8072.0" (Bottlerocket) and "".
[[nodiscard]] std::optional<DriverRelease> parse_release(std::string_view version);

// From here on AWS moves sysfs files to places that are not known yet (docs/reference/driver.md#driver-versions).
inline constexpr DriverRelease kFilesMoved{2, 31, 7};

// Sets of chip families, a bit each.
using Families = unsigned;
[[nodiscard]] constexpr Families family_bit(model::Family family) {
  return 1U << static_cast<unsigned>(family);
}

// Where a file is to be found.
struct Lifetime {
  DriverRelease since;                                     // the first driver that has it
  DriverRelease until{999, 0, 0};                          // the first one that has it no more
  Families families = ~0U;                                 // chips that have it for certain
  Families perhaps = 0;                                    // chips of which it is unknown
  model::DriverLayout layout{model::DriverLayout::stats};  // the layout that its presence proves
};

enum class SignalKind {
  ecc,         // 16-bit count; 65535, all ones, is for the health policy to interpret
  hbm,         // of up to four 16-bit registers: a count or their sum (health/hbm_counts.h)
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
  const Reason* reason = nullptr;  // that it gives; null where its value by itself is no fault. Of a count: it is not 0
  std::string_view what{};         // of a count that is a fault: its singular noun; the plural takes an "s"
  std::string_view meaning{};      // for docs/health.md
};

// How far a fault reaches.
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

// Whether the file is of health_status/, which shows what a thread of the driver read last, not what is there now.
[[nodiscard]] bool is_cached(const DeviceSignal& signal);

// Whether the device gave a value for that file.
[[nodiscard]] bool has_value(const model::NeuronDevice& device, const DeviceSignal& signal);
// Whether any of its cores did.
[[nodiscard]] bool has_value(const model::NeuronDevice& device, const CoreSignal& signal);

// The driver by its version text; where that is no number, at least the first one that has all the files that
// `devices` show. nullopt: nothing says anything.
[[nodiscard]] std::optional<DriverRelease> release_of(std::string_view version,
                                                      std::span<const model::NeuronDevice> devices);

// Whether that driver has the file for such a chip: for certain, or as far as anybody knows. An unknown chip has
// nothing for certain; of an unknown driver everything is possible.
[[nodiscard]] bool must_be_there(const Lifetime& life, std::optional<DriverRelease> release,
                                 std::optional<model::Family> family);
[[nodiscard]] bool may_be_there(const Lifetime& life, std::optional<DriverRelease> release,
                                std::optional<model::Family> family);

}  // namespace neuron::health
