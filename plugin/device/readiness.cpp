#include "plugin/device/readiness.h"

#include <string_view>

namespace neuron::plugin {
namespace {

std::string_view words(ServingStep step) {
  switch (step) {
    case ServingStep::not_offered:
      return "none on this node";
    case ServingStep::waiting:
      return "not registered; waiting for the kubelet or the next attempt";
    case ServingStep::registering:
      return "waiting for the kubelet to accept the registration";
    case ServingStep::unwatched:
      return "waiting for the kubelet to call ListAndWatch";
    case ServingStep::registered:
      return "registered";
  }
  return "";
}

}  // namespace

metrics::Readiness assess_readiness(const ServingState& state) {
  if (!state.scanned) return {false, "the node has not been scanned yet\n"};
  metrics::Readiness all{true, ""};
  for (const ResourceReadiness& one : state.resources) {
    if (one.step == ServingStep::not_offered) continue;
    all.ready = all.ready && one.step == ServingStep::registered;
    all.text += std::string(model::resource_name(one.resource)) + ": " + std::string(words(one.step)) + "\n";
  }
  if (all.text.empty()) all.text = "nothing to offer on this node\n";
  return all;
}

std::map<std::string, bool> registered_resources(const ServingState& state) {
  std::map<std::string, bool> registered;
  for (const ResourceReadiness& one : state.resources) {
    if (one.step == ServingStep::not_offered) continue;
    registered.emplace(model::resource_name(one.resource), one.step == ServingStep::registered);
  }
  return registered;
}

}  // namespace neuron::plugin
