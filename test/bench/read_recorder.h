#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

// Which files a piece of code reads: the linker's --wrap=read sends every read() of the libraries here first. For
// programs linked with -Wl,--wrap=read. One thread.
namespace neuron::bench {

// Absolute paths of what `run` reads, ascending, each once.
[[nodiscard]] std::vector<std::string> files_read_by(const std::function<void()>& run);

// read(2) itself, past the recorder.
[[nodiscard]] ssize_t plain_read(int fd, void* buffer, std::size_t count);

}  // namespace neuron::bench
