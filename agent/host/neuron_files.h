#pragma once

#include <string_view>

#include "agent/base/result.h"
#include "agent/health/signals.h"
#include "agent/model/host_scan.h"

namespace neuron::host {

// Puts the text of the file `signal` into `signals`. Errors: data_corrupt, without the path; then nothing is stored.
[[nodiscard]] Result<void> store_signal(const health::DeviceSignal& signal, std::string_view text,
                                        model::DeviceSignals& signals);

}  // namespace neuron::host
