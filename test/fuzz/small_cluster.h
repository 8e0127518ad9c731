#pragma once

#include <array>
#include <chrono>
#include <string>

#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/effort.h"

// A cluster of two nodes, of which a fuzzing program replaces one list.
namespace neuron::fleet::fuzz {

// A node of each mode. The devices of n are shared; the pod h has a core of one, p waits for two, q for a count.
inline constexpr std::array<const char*, kKinds> kLists = {
    R"({"items":[{"metadata":{"name":"n"}},{"metadata":{"name":"m","labels":{"node.kubernetes.io/instance-type":"trn1.32xlarge"}},
      "status":{"allocatable":{"aws.amazon.com/neuron":"16","aws.amazon.com/neuroncore":"30"},
      "capacity":{"aws.amazon.com/neuron":"16","aws.amazon.com/neuroncore":"32"}}}]})",
    R"({"items":[{"metadata":{"namespace":"d","name":"h"},"spec":{"nodeName":"n","resourceClaims":[{"name":"c","resourceClaimName":"hc"}],
      "containers":[{"name":"a","resources":{"claims":[{"name":"c"}]}}]},"status":{"phase":"Running"}},
      {"metadata":{"namespace":"d","name":"p"},"spec":{"resourceClaims":[{"name":"c","resourceClaimTemplateName":"t"}],
      "containers":[{"name":"a","resources":{"claims":[{"name":"c"}]}}]},"status":{"phase":"Pending"}},
      {"metadata":{"namespace":"d","name":"q"},"spec":{"containers":[{"name":"a","resources":{"limits":{"aws.amazon.com/neuron":"20"}}}]},
      "status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
      "message":"0/2 nodes are available: 2 Insufficient aws.amazon.com/neuron."}]}}]})",
    R"({"items":[{"spec":{"driver":"neuron.aws.com","nodeName":"n","pool":{"name":"n","generation":1,"resourceSliceCount":1},
      "sharedCounters":[{"name":"cores","counters":{"core-0":{"value":"1"}}}],
      "devices":[{"name":"neuron-device-0","allowMultipleAllocations":true,"capacity":{"cores":{"value":"2"}},
      "attributes":{"resourceType":{"string":"neuron_device"},"whole":{"bool":true},"deviceId":{"int":0}}},
      {"name":"neuron-device-1","attributes":{"resourceType":{"string":"neuron_device"},"deviceId":{"int":1}},
      "consumesCounters":[{"counterSet":"cores","counters":{"core-0":{"value":"1"}}}]}]}}]})",
    R"({"items":[{"metadata":{"namespace":"d","name":"hc"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"k"}}]}},
      "status":{"allocation":{"devices":{"results":[{"request":"r","driver":"neuron.aws.com","pool":"n","device":"neuron-device-0",
      "consumedCapacity":{"cores":"1"}}]}},"reservedFor":[{"resource":"pods","name":"h"}]}}]})",
    R"({"items":[{"metadata":{"namespace":"d","name":"t"},"spec":{"spec":{"devices":{"requests":[{"name":"r","exactly":{
      "deviceClassName":"k","count":1,"capacity":{"requests":{"cores":"2"}}}}]}}}}]})",
    R"({"items":[{"metadata":{"name":"k"},"spec":{"selectors":[{"cel":{"expression":"device.driver == 'neuron.aws.com'"}}]}}]})",
    R"({"items":[]})"};

// With `text` as the list of this kind, as far as it is one; kKinds: as the answer of the agent on m.
inline Documents documents_with(std::size_t kind, const std::string& text) {
  Documents documents;
  documents.read_at = "2026-11-26T12:00:00Z";
  for (std::size_t i = 0; i < kKinds; ++i) documents.lists.at(i) = {kLists.at(i)};
  if (kind == kKinds) {
    documents.agents["m"] = {"d/agent", text, ""};
  } else if (const auto page = kept_page(static_cast<Kind>(kind), text)) {
    documents.lists.at(kind) = {page->text};
  }
  return documents;
}

// Ends a search when the clock was asked so often, not after a time.
inline Effort effort_of(int times) {
  return Effort(std::chrono::seconds(1),
                [asked = 0, times]() mutable { return SteadyTime(std::chrono::milliseconds(1000) * asked++ / times); });
}

}  // namespace neuron::fleet::fuzz
