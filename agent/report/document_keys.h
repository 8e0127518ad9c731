#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "agent/model/device.h"

// Internal to agent/report: what writer and reader of the document share.
namespace neuron::report {

inline constexpr const char* kFormat = "neuron-ls/1";

struct DeviceCounter {
  const char* name;
  std::optional<std::uint64_t> model::DeviceSignals::*field;
};
inline constexpr std::array<DeviceCounter, 10> kDeviceCounters = {{
    {"sram_ecc_uncorrected", &model::DeviceSignals::sram_ecc_uncorrected},
    {"mem_ecc_uncorrected", &model::DeviceSignals::mem_ecc_uncorrected},
    {"mem_ecc_repairable_uncorrected", &model::DeviceSignals::mem_ecc_repairable_uncorrected},
    {"sram_ecc_corrected", &model::DeviceSignals::sram_ecc_corrected},
    {"mem_ecc_corrected", &model::DeviceSignals::mem_ecc_corrected},
    {"heartbeat", &model::DeviceSignals::heartbeat},
    {"hw_error_events", &model::DeviceSignals::hw_error_events},
    {"hbm_ecc_errors", &model::DeviceSignals::hbm_ecc_errors},
    {"repairable_hbm_ecc_errors", &model::DeviceSignals::repairable_hbm_ecc_errors},
    {"sram_ecc_errors", &model::DeviceSignals::sram_ecc_errors},
}};

struct CoreCounter {
  const char* name;
  std::optional<std::uint64_t> model::CoreSignals::*field;
};
inline constexpr std::array<CoreCounter, 6> kCoreCounters = {{
    {"device_memory_bytes", &model::CoreSignals::device_memory_bytes},
    {"hw_error", &model::CoreSignals::hw_error},
    {"hw_hbm_ue_error", &model::CoreSignals::hw_hbm_ue_error},
    {"hw_nc_ue_error", &model::CoreSignals::hw_nc_ue_error},
    {"hw_dma_abort_error", &model::CoreSignals::hw_dma_abort_error},
    {"hw_repairable_hbm_ue_error", &model::CoreSignals::hw_repairable_hbm_ue_error},
}};

}  // namespace neuron::report
