// The questions of kubectl-neuron about a cluster of which one list is foreign: why of each pod. The first
// byte is the kind of the list, 7 the answer of the agent.

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>

#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/why.h"

namespace {

using namespace neuron::fleet;  // NOLINT

void require(bool holds) {
  if (!holds) std::abort();
}

// A node of each mode. The devices of n are shared; the pod h has a core of one, p waits for two, q for a count.
constexpr std::array<const char*, kKinds> kLists = {
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

// Ends each search after as many looks at the clock, not after a time.
Effort short_effort() {
  return Effort(std::chrono::seconds(1),
                [looks = 0]() mutable { return neuron::SteadyTime(std::chrono::milliseconds(20) * looks++); });
}

void require_plain(const std::string& text) {
  require(!text.empty() && text.find('\x1b') == std::string::npos);
}

void ask(const Documents& documents) {
  const Fleet fleet = make_fleet(documents);
  std::size_t asked = 0;
  for (const Pod& pod : fleet.pods) {
    if (++asked > 4) break;
    Effort effort = short_effort();
    const Why answer = why(fleet, pod, &effort);
    require(exit_status(answer) >= 0 && exit_status(answer) <= 2);
    require_plain(why_text(answer));
    require_plain(why_json(answer));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);  // NOLINT
  Documents documents;
  documents.read_at = "2026-11-26T12:00:00Z";
  for (std::size_t i = 0; i < kKinds; ++i) documents.lists.at(i) = {kLists.at(i)};
  const std::size_t kind = data[0] % (kKinds + 1);
  if (kind == kKinds) {
    documents.agents["m"] = {"d/agent", text, ""};
  } else if (const auto page = kept_page(static_cast<Kind>(kind), text)) {
    documents.lists.at(kind) = {page->text};
  }
  ask(documents);
  return 0;
}
