#pragma once

#include <string>

#include "tools/kubectl-neuron/fleet.h"

// Whether a device is selected by a CEL expression of a class or request. The usual shapes are evaluated:
// device.driver, device.attributes[D].NAME (also .?NAME.orValue(V)), device.capacity[D].NAME,
// device.allowMultipleAllocations,
// ==, !=, <, <=, >, >=, in, !, &&, ||, startsWith, endsWith, contains, quantity(), compareTo, isLessThan,
// isGreaterThan. Every other expression, and a name that the device lacks (which the scheduler takes as an error), is
// `unknown`. Pure.
namespace neuron::fleet {

enum class Match { yes, no, unknown };

struct SelectorAnswer {
  Match match = Match::unknown;
  std::string part;  // `no`: the part of the conjunction that is false; `unknown`: the part that cannot be evaluated
};

[[nodiscard]] SelectorAnswer selects(const std::string& expression, const std::string& driver,
                                     const SliceDevice& device);

}  // namespace neuron::fleet
