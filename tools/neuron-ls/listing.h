#pragma once

#include <string>

#include "agent/base/result.h"
#include "tools/neuron-ls/options.h"
#include "tools/render/node_report.h"
#include "tools/render/style.h"

namespace neuron::ls {

// The text that a report becomes under these options, complete with line ends; -j has none at its end, as the official
// tool. `colour` is none wherever the output is no terminal. Pure. Errors: invalid_argument when --device names a
// device that is not listed.
[[nodiscard]] Result<std::string> listing(const render::NodeReport& report, const Options& options,
                                          render::ColourDepth colour);

}  // namespace neuron::ls
