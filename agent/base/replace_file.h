#pragma once

#include <string>

#include "agent/base/result.h"

namespace neuron {

// Makes `path` say `text`: written beside it as "<path>.new" and renamed, so that no reader sees half a file. A file
// that says the same already is not touched; with an empty text the file is removed. Blocks on file writes; nobody else
// may replace the same path meanwhile. Errors: from errno, naming the path.
[[nodiscard]] Result<void> replace_file(const std::string& path, const std::string& text);

}  // namespace neuron
