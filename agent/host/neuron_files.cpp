#include "agent/host/neuron_files.h"

#include <array>

#include "agent/host/attributes.h"

namespace neuron::host {
namespace {

using model::CoreSignals;
using model::DeviceSignals;
using model::DriverLayout;

constexpr std::array kDeviceFiles = {
    DeviceFile{"stats/hardware/sram_ecc_uncorrected", FileKind::ecc, &DeviceSignals::sram_ecc_uncorrected},
    DeviceFile{"stats/hardware/mem_ecc_uncorrected", FileKind::ecc, &DeviceSignals::mem_ecc_uncorrected},
    DeviceFile{"stats/hardware/mem_ecc_repairable_uncorrected", FileKind::ecc,
               &DeviceSignals::mem_ecc_repairable_uncorrected},
    DeviceFile{"stats/hardware/sram_ecc_corrected", FileKind::ecc, &DeviceSignals::sram_ecc_corrected,
               DriverLayout::health_v2},
    DeviceFile{"stats/hardware/mem_ecc_corrected", FileKind::ecc, &DeviceSignals::mem_ecc_corrected,
               DriverLayout::health_v2},
    DeviceFile{"stats/hardware/health_status/unhealthy_components", FileKind::components, nullptr,
               DriverLayout::health_v2},
    DeviceFile{"stats/hardware/health_status/healthcheck_heartbeat", FileKind::heartbeat, &DeviceSignals::heartbeat,
               DriverLayout::health_v2},
    DeviceFile{"stats/hardware/health_status/hw_error_event", FileKind::health, &DeviceSignals::hw_error_events,
               DriverLayout::health_v1},
    DeviceFile{"stats/hardware/health_status/hbm_ecc_err_count", FileKind::health, &DeviceSignals::hbm_ecc_errors,
               DriverLayout::health_v1},
    DeviceFile{"stats/hardware/health_status/repairable_hbm_ecc_err_count", FileKind::health,
               &DeviceSignals::repairable_hbm_ecc_errors, DriverLayout::health_v1},
    DeviceFile{"stats/hardware/health_status/sram_ecc_err_count", FileKind::health, &DeviceSignals::sram_ecc_errors,
               DriverLayout::health_v1},
    DeviceFile{"reset", FileKind::reset, nullptr, DriverLayout::bare},
};

constexpr std::array kCoreFiles = {
    CoreFile{"stats/memory_usage/device_mem/total", &CoreSignals::device_memory_bytes},
    CoreFile{"stats/status/hw_error/total", &CoreSignals::hw_error},
    CoreFile{"stats/status/hw_hbm_ue_error/total", &CoreSignals::hw_hbm_ue_error},
    CoreFile{"stats/status/hw_nc_ue_error/total", &CoreSignals::hw_nc_ue_error},
    CoreFile{"stats/status/hw_dma_abort_error/total", &CoreSignals::hw_dma_abort_error},
    CoreFile{"stats/status/hw_repairable_hbm_ue_error/total", &CoreSignals::hw_repairable_hbm_ue_error},
};

Result<std::uint64_t> parse_as(FileKind kind, std::string_view text) {
  if (kind == FileKind::ecc) return parse_ecc_count(text);
  if (kind == FileKind::heartbeat) return parse_heartbeat(text);
  return parse_counter(text);
}

bool is_health_file(FileKind kind) {
  return kind == FileKind::health || kind == FileKind::heartbeat || kind == FileKind::components;
}

}  // namespace

std::span<const DeviceFile> device_files() {
  return kDeviceFiles;
}
std::span<const CoreFile> core_files() {
  return kCoreFiles;
}

Result<void> store_signal(const DeviceFile& file, std::string_view text, model::DeviceSignals& signals) {
  if (is_health_file(file.kind)) {
    if (says_unreachable(text)) {
      signals.unreachable = true;
      return {};
    }
    // Only the files that can say so prove the opposite.
    if (file.kind != FileKind::health && !signals.unreachable) signals.unreachable = false;
  }
  if (file.kind == FileKind::components) {
    TRY_ASSIGN(signals.unhealthy_components, parse_components(text));
    return {};
  }
  if (file.kind == FileKind::reset) {
    TRY_ASSIGN(signals.reset_state, parse_reset_state(text));
    return {};
  }
  TRY_ASSIGN(signals.*file.target, parse_as(file.kind, text));
  return {};
}

}  // namespace neuron::host
