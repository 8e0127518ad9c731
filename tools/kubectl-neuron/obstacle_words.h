#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/kubectl-neuron/fit.h"

// Obstacles as text. Names in it are printable. Pure.
namespace neuron::fleet {

// One sentence without a full stop: "asks for 4 aws.amazon.com/neuron, 2 of 16 are free; held by a/train-0 (14)".
[[nodiscard]] std::string words_of(const Obstacle& obstacle);

[[nodiscard]] std::string_view to_string(Obstacle::Kind kind);  // the enumerator's name
[[nodiscard]] std::string_view to_string(Answer answer);        // "fits", "does_not_fit", "unknown"

// "a, b, c and 4 more": the first `most`, printable.
[[nodiscard]] std::string some_of(const std::vector<std::string>& names, std::size_t most = 4);
[[nodiscard]] std::string holders_of(const std::vector<Holder>& holders, std::size_t most = 4);

// Nodes with equal obstacles as one. Passive data.
struct NodeGroup {
  std::vector<std::string> nodes;
  Answer answer = Answer::unknown;
  std::vector<Obstacle> obstacles;  // holders of all nodes, each with its sum
};
// Those where it fits first, then unknown, then the others by the number of obstacles and nodes.
[[nodiscard]] std::vector<NodeGroup> grouped(const std::vector<NodeState>& states,
                                             const std::vector<Verdict>& verdicts);

}  // namespace neuron::fleet
