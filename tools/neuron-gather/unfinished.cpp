#include "tools/neuron-gather/unfinished.h"

#include <filesystem>
#include <system_error>

namespace neuron::gather {

namespace fs = std::filesystem;

void discard(const Unfinished& unfinished) noexcept {
  std::error_code error;
  if (unfinished.path.empty()) return;
  if (!unfinished.keeps_folder) {
    fs::remove_all(unfinished.path, error);
    return;
  }
  for (fs::directory_iterator it(unfinished.path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    fs::remove_all(it->path(), ignored);
  }
}

}  // namespace neuron::gather
