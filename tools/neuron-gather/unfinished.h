#pragma once

#include <string>

namespace neuron::gather {

// What write_output is making and has not finished; to be removed when it never will be. Passive data.
struct Unfinished {
  std::string path;           // "": nothing
  bool keeps_folder = false;  // `path` was there before, an empty directory: only what is in it goes
};

// Removes it, as far as that is possible. Nothing happens when it is gone already.
void discard(const Unfinished& unfinished) noexcept;

}  // namespace neuron::gather
