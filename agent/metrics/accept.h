#pragma once

#include <string_view>

#include "agent/metrics/exposition.h"

namespace neuron::metrics {

// Which of the two texts a client would rather have, by its header Accept (RFC 9110, 12.5.1): OpenMetrics where it
// names that, of a version that is written here, with a higher weight than plain text; else Prometheus' own. Never
// refuses: a header that makes no sense, or "", wants the latter. `accept` is foreign. Pure.
[[nodiscard]] TextFormat format_for(std::string_view accept);

}  // namespace neuron::metrics
