#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neuron::sim {

// At most five of `names` that `text` may have been meant to be, nearest first: few edits away, or the same up to the
// first dot. Empty when nothing is near. Pure.
[[nodiscard]] std::vector<std::string> near_matches(std::string_view text, const std::vector<std::string>& names);

}  // namespace neuron::sim
