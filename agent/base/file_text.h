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

// The whole content of a file; links are not followed. Blocks on the file system, never on a FIFO in the file's place.
// Errors: from errno, data_corrupt past `max_bytes`, naming `path`.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes);

// Writes beside `path`, as "<path>.new", and renames, so that no reader sees half a file. Nothing is synced: after a
// loss of power the file may be empty. Blocks on the file system; no other process may replace the same path meanwhile.
// Errors: from errno, naming the path.
[[nodiscard]] Result<void> write_by_rename(const std::string& path, std::string_view text);

// Makes `path` say `text`, by write_by_rename(); its directory is made if missing; with an empty text the file is
// removed. A file that says the same already is not touched: then the result is false. Errors: as write_by_rename().
[[nodiscard]] Result<bool> keep_file(const std::string& path, const std::string& text);

// The directory was removed on the host while a mount or a process keeps it: nothing can be made in it any more. Blocks
// on the file system.
[[nodiscard]] bool is_removed_directory(const std::string& path);

}  // namespace neuron
