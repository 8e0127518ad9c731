#include "agent/health/signals.h"

#include <algorithm>
#include <array>

#include "agent/base/parse.h"

namespace neuron::health {
namespace {

using model::CoreSignals;
using model::DeviceSignals;
using model::DriverLayout;
using model::Family;

constexpr Families kV4 = family_bit(Family::trainium3);
constexpr Families kV3 = family_bit(Family::trainium2);
constexpr Families kV2 = family_bit(Family::trainium1) | family_bit(Family::inferentia2);
constexpr Families kFromV2 = kV2 | kV3 | kV4;
constexpr DriverRelease kHealthV1{2, 28, 0};
constexpr DriverRelease kHealthV2{2, 30, 2};

// The counts of 2.28 and 2.29; whether those drivers had them on Trainium2 is not known.
constexpr Lifetime kErrCounts{
    .since = kHealthV1, .until = kHealthV2, .families = kV4, .perhaps = kV3, .layout = DriverLayout::health_v1};
constexpr Lifetime kComponents{.since = kHealthV2, .families = kV3 | kV4, .layout = DriverLayout::health_v2};
constexpr Lifetime kCorrected{.since = kHealthV2, .families = kFromV2, .layout = DriverLayout::health_v2};
constexpr Lifetime kEcc{.since = {2, 14, 5}, .families = kFromV2};
constexpr Lifetime kRepairableEcc{.since = {2, 23, 9}, .families = kFromV2};
constexpr Lifetime kErrorEvents{.since = kHealthV1, .families = kV4, .perhaps = kV3, .layout = DriverLayout::health_v1};
constexpr Lifetime kReset{.since = {2, 5, 0}, .layout = DriverLayout::bare};
constexpr Lifetime since(int major, int minor) {
  return {.since = {major, minor, 0}};
}

// path, kind, value, life, weight, reason, noun of one fault, meaning
constexpr std::array kDeviceSignals = {
    DeviceSignal{"stats/hardware/sram_ecc_uncorrected", SignalKind::ecc, &DeviceSignals::sram_ecc_uncorrected, kEcc,
                 Weight::required, &reasons::kSramEccUncorrected, "uncorrected SRAM error", "uncorrected SRAM errors"},
    DeviceSignal{"stats/hardware/health_status/sram_ecc_err_count", SignalKind::health, &DeviceSignals::sram_ecc_errors,
                 kErrCounts, Weight::required, &reasons::kSramEccUncorrected, "uncorrected SRAM error",
                 "uncorrected SRAM errors"},
    DeviceSignal{"stats/hardware/mem_ecc_uncorrected", SignalKind::hbm, &DeviceSignals::mem_ecc_uncorrected, kEcc,
                 Weight::required, &reasons::kMemEccUncorrected, "uncorrected HBM error",
                 "uncorrected HBM errors that cannot be repaired"},
    DeviceSignal{"stats/hardware/health_status/hbm_ecc_err_count", SignalKind::health, &DeviceSignals::hbm_ecc_errors,
                 kErrCounts, Weight::required, &reasons::kMemEccUncorrected, "uncorrected HBM error",
                 "uncorrected HBM errors that cannot be repaired"},
    DeviceSignal{"stats/hardware/mem_ecc_repairable_uncorrected", SignalKind::hbm,
                 &DeviceSignals::mem_ecc_repairable_uncorrected, kRepairableEcc, Weight::required,
                 &reasons::kMemEccRepairable, "repairable HBM error", "uncorrected HBM errors that a reload repairs"},
    DeviceSignal{"stats/hardware/health_status/repairable_hbm_ecc_err_count", SignalKind::health,
                 &DeviceSignals::repairable_hbm_ecc_errors, kErrCounts, Weight::required, &reasons::kMemEccRepairable,
                 "repairable HBM error", "uncorrected HBM errors that a reload repairs"},
    DeviceSignal{"stats/hardware/health_status/unhealthy_components", SignalKind::components, nullptr, kComponents,
                 Weight::required, &reasons::kUnhealthyComponents, "",
                 "components that the driver reports as unhealthy"},
    DeviceSignal{"stats/hardware/health_status/healthcheck_heartbeat", SignalKind::heartbeat, &DeviceSignals::heartbeat,
                 kComponents, Weight::required, &reasons::kHeartbeatStuck, "", "a count that the firmware advances"},
    DeviceSignal{"stats/hardware/health_status/hw_error_event", SignalKind::health, &DeviceSignals::hw_error_events,
                 kErrorEvents, Weight::optional, nullptr, "", "hardware errors that the firmware reported; shown only"},
    DeviceSignal{"stats/hardware/sram_ecc_corrected", SignalKind::ecc, &DeviceSignals::sram_ecc_corrected, kCorrected,
                 Weight::optional, nullptr, "", "corrected SRAM errors; shown only"},
    DeviceSignal{"stats/hardware/mem_ecc_corrected", SignalKind::ecc, &DeviceSignals::mem_ecc_corrected, kCorrected,
                 Weight::optional, nullptr, "", "corrected HBM errors; shown only"},
    DeviceSignal{"reset", SignalKind::reset, nullptr, kReset, Weight::optional, &reasons::kDeviceInvalid, "",
                 "0 in reset, 1 ready, 2 given up; readable by root only"},
};

// path, value, life, weight, reason, reach, meaning. hw_error and hw_nc_ue_error are the compute core's own; HBM and
// DMA belong to all cores.
constexpr std::array kCoreSignals = {
    CoreSignal{"stats/status/hw_nc_ue_error/total", &CoreSignals::hw_nc_ue_error, since(2, 19), Weight::required,
               &reasons::kHwNcUeError, Reach::core, "executions that met an uncorrected error of the core"},
    CoreSignal{"stats/status/hw_hbm_ue_error/total", &CoreSignals::hw_hbm_ue_error, since(2, 19), Weight::required,
               &reasons::kHwHbmUeError, Reach::device, "executions that met an uncorrected HBM error"},
    CoreSignal{"stats/status/hw_dma_abort_error/total", &CoreSignals::hw_dma_abort_error, since(2, 19),
               Weight::required, &reasons::kHwDmaAbortError, Reach::device, "executions that met a DMA abort"},
    CoreSignal{"stats/status/hw_error/total", &CoreSignals::hw_error, since(2, 8), Weight::required, &reasons::kHwError,
               Reach::core, "executions that met a hardware error"},
    CoreSignal{"stats/status/hw_repairable_hbm_ue_error/total", &CoreSignals::hw_repairable_hbm_ue_error, since(2, 23),
               Weight::required, &reasons::kHwRepairableHbmUeError, Reach::device,
               "executions that met a repairable HBM error"},
    CoreSignal{"stats/memory_usage/device_mem/total", &CoreSignals::device_memory_bytes, since(2, 10), Weight::optional,
               nullptr, Reach::device, "bytes of device memory in use; shown only"},
};

constexpr Families kFromV3 = kV3 | kV4;
constexpr DriverRelease kFirstEcc{2, 14, 5};
constexpr DriverRelease kFirstSplit{2, 26, 0};

struct HbmFormOfDriver {
  DriverRelease since;
  DriverRelease until{999, 0, 0};  // the first one that prints another form
  Families families = 0;
  HbmForm form = HbmForm::either;
};

constexpr std::array kForms = {
    HbmFormOfDriver{.since = kFirstEcc, .until = kFirstSplit, .families = kFromV3, .form = HbmForm::packed},
    HbmFormOfDriver{.since = kFirstEcc, .until = kFirstSplit, .families = kV2, .form = HbmForm::either},
    HbmFormOfDriver{.since = kFirstSplit, .families = kV2 | kFromV3, .form = HbmForm::split},
};

constexpr unsigned kRepairableBits = 12;
constexpr std::uint64_t kRepairableMask = (1U << kRepairableBits) - 1;

bool in_time(const Lifetime& life, DriverRelease release) {
  return release >= life.since && release < life.until;
}

}  // namespace

std::optional<DriverRelease> parse_release(std::string_view version) {
  constexpr int kMaxNumber = 99999;
  const auto parts = split(version, '.');
  if (parts.size() < 2) return std::nullopt;
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size() && i < parts.size(); ++i) {
    const auto number = parse_int(parts[i], 0, kMaxNumber);
    if (!number) return std::nullopt;
    numbers[i] = *number;
  }
  return DriverRelease{numbers[0], numbers[1], numbers[2]};
}

std::span<const DeviceSignal> device_signals() {
  return kDeviceSignals;
}
std::span<const CoreSignal> core_signals() {
  return kCoreSignals;
}

bool is_cached(const DeviceSignal& signal) {
  return signal.path.find("/health_status/") != std::string_view::npos;
}

bool has_value(const model::NeuronDevice& device, const DeviceSignal& signal) {
  if (signal.kind == SignalKind::components) return device.signals.unhealthy_components.has_value();
  if (signal.kind == SignalKind::reset) return device.signals.reset_state.has_value();
  return (device.signals.*signal.value).has_value();
}

bool has_value(const model::NeuronDevice& device, const CoreSignal& signal) {
  return std::ranges::any_of(device.cores, [&](const CoreSignals& core) { return (core.*signal.value).has_value(); });
}

std::optional<DriverRelease> release_of(std::string_view version, std::span<const model::NeuronDevice> devices) {
  if (auto release = parse_release(version)) return release;
  std::optional<DriverRelease> oldest;
  const auto shown = [&](const auto& signal) {
    const bool any = std::ranges::any_of(devices, [&](const auto& device) { return has_value(device, signal); });
    if (any && (!oldest || *oldest < signal.life.since)) oldest = signal.life.since;
  };
  for (const DeviceSignal& signal : kDeviceSignals) shown(signal);
  for (const CoreSignal& signal : kCoreSignals) shown(signal);
  return oldest;
}

bool must_be_there(const Lifetime& life, std::optional<DriverRelease> release, std::optional<Family> family) {
  if (!release || !in_time(life, *release) || !family) return false;
  return (life.families & family_bit(*family)) != 0;
}

bool may_be_there(const Lifetime& life, std::optional<DriverRelease> release, std::optional<Family> family) {
  if (release && !in_time(life, *release)) return false;
  return !family || ((life.families | life.perhaps) & family_bit(*family)) != 0;
}

HbmForm hbm_form(std::optional<DriverRelease> release, std::optional<Family> family) {
  if (!release || !family) return HbmForm::either;
  const auto* const found = std::ranges::find_if(kForms, [&](const HbmFormOfDriver& row) {
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
