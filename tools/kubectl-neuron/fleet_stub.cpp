#include "tools/kubectl-neuron/fleet.h"
namespace neuron::fleet {
bool has_ended(const Pod& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed";
}
bool asks_for_hardware(const Pod&) {
  return true;
}
}  // namespace neuron::fleet
