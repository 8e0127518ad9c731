#pragma once

#include <string>

namespace neuron::plugin {

// Whether what the agent is there for is done, as a probe asks.
struct Readiness {
  bool ready = false;
  std::string text;  // a line per item, with the missing part
  friend bool operator==(const Readiness&, const Readiness&) = default;
};

}  // namespace neuron::plugin
