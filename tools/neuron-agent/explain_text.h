#pragma once

#include <string>

#include "tools/neuron-agent/explain_pod.h"

namespace neuron::agent {

// The report as text: hardware, locality and health of each container, the reason of the choice, and actions. Foreign
// names are printable already. With line ends. Pure.
[[nodiscard]] std::string explain_text(const ExplainedPod& pod, const ExplainFacts& facts);

// The same as one JSON document of schema neuron-explain/1 (docs/schema/neuron-explain-1.json), with a line end. Pure.
[[nodiscard]] std::string explain_json(const ExplainedPod& pod, const ExplainFacts& facts);
[[nodiscard]] std::string explain_json_failure(const std::string& reason);

// "unhealthy", "unhealthy: sram_ecc_uncorrected".
[[nodiscard]] std::string state_words(const model::Health& health);

}  // namespace neuron::agent
