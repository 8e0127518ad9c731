#pragma once

#include <string>

#include "tools/render/node_report.h"

namespace neuron::render {

// One line of column names and one line per device, as RFC 4180 has it but with '\n' at line ends; the columns are in
// docs/neuron-ls.md. Unknown values are empty; lists in a cell are joined by blanks. Pure, any thread.
[[nodiscard]] std::string node_report_csv(const NodeReport& report);

}  // namespace neuron::render
