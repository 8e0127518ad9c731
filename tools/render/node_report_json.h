#pragma once

#include <string>

#include "tools/render/node_report.h"

namespace neuron::render {

// How JSON is laid out: for people, or one line per document so that a stream of them can be cut at line ends.
enum class JsonLayout { indented, one_line };

// The report as one object in the format "neuron-ls/1", documented in docs/neuron-ls.md and
// docs/schema/neuron-ls-1.json. Unknown values are null, never 0 or ""; every key is always there. Ends in a newline.
// Valid UTF-8 whatever the host says. Pure, any thread.
[[nodiscard]] std::string node_report_json(const NodeReport& report, JsonLayout layout);

}  // namespace neuron::render
