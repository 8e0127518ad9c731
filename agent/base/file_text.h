#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "agent/base/result.h"

namespace neuron {

// What `fd` gives up to its end. Blocks. Errors: from errno, data_corrupt past `max_bytes`, naming `path`.
[[nodiscard]] Result<std::string> read_all(int fd, std::size_t max_bytes, std::string_view path);

// All of `text`. Blocks. Errors: from errno, naming `path`.
[[nodiscard]] Result<void> write_all(int fd, std::string_view text, std::string_view path);

// Makes `path` say `text`: written beside it as "<path>.new" and renamed, so that no reader sees half a file. A file
// that says the same already is not touched; with an empty text the file is removed. Blocks on file writes; nobody else
// may replace the same path meanwhile. Errors: from errno, naming the path.
[[nodiscard]] Result<void> replace_file(const std::string& path, const std::string& text);

}  // namespace neuron
