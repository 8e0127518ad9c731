#pragma once

#include <string>

#include "agent/host/driver_query.h"

namespace neuron::gather {

// The file neuron-ioctl/neuron<N>.json for these answers (docs/fixtures.md); what was not answered is left out. Reading
// it with host::parse_recorded_answers gives the same answers. Pure.
[[nodiscard]] std::string driver_answers_json(const host::DriverAnswers& answers);

}  // namespace neuron::gather
