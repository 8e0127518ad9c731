#pragma once

#include <string_view>

#include "agent/host/driver_query.h"

namespace neuron::host {

// Answers recorded as JSON (docs/fixtures.md#recorded-answers), foreign text of any content. A key that is missing is
// an unanswered question; one that is malformed is unanswered too and named in `problems` behind `path`, while the
// other keys still count. Pure; any thread.
[[nodiscard]] DriverAnswers parse_recorded_answers(std::string_view text, std::string_view path);

}  // namespace neuron::host
