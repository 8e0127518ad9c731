#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neuron {

// The end of an error about a misspelled `text`: "; did you mean trn1.2xlarge, trn1.32xlarge?", with at most five of
// `names`, nearest first, that are few edits away or the same up to the first dot; "" when nothing is near. Pure.
[[nodiscard]] std::string did_you_mean(std::string_view text, const std::vector<std::string>& names);

}  // namespace neuron
