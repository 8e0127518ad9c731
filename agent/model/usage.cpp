#include "agent/model/usage.h"

namespace neuron::model {
namespace {

constexpr std::array<std::string_view, kHostMemoryKinds> kHostKindNames{
    "dma_buffers",   "tensors",       "constants", "application_memory",
    "driver_memory", "notifications", "dma_rings", "uncategorized"};

constexpr std::array<std::string_view, kDeviceMemoryKinds> kDeviceKindNames{
    "model_code",     "tensors",       "constants",    "model_shared_scratchpad",
    "runtime_memory", "driver_memory", "collectives",  "nonshared_scratchpad",
    "notifications",  "dma_rings",     "uncategorized"};

constexpr std::array<std::string_view, kExecutionStatuses> kExecutionNames{"success",
                                                                           "timeout",
                                                                           "exec_bad_input",
                                                                           "execute_completed_with_error",
                                                                           "execute_completed_with_num_error",
                                                                           "execute_failed_to_queue",
                                                                           "generic_error",
                                                                           "hw_collectives_error"};

}  // namespace

std::string_view to_string(HostMemoryKind kind) {
  return kHostKindNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(DeviceMemoryKind kind) {
  return kDeviceKindNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(ExecutionStatus status) {
  return kExecutionNames.at(static_cast<std::size_t>(status));
}

}  // namespace neuron::model
