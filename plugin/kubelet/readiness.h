#pragma once

#include <string>

namespace neuron::plugin {

// Whether what the agent is there for is done, as a probe asks.
struct Readiness {
  bool ready = false;
  std::string text;  // lines for people: what there is, with what is missing
  friend bool operator==(const Readiness&, const Readiness&) = default;
};

}  // namespace neuron::plugin
