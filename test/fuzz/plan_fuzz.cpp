// `plan` of a foreign manifest in a cluster of which one list is foreign as well. The first byte is the kind of the
// list, 7 the answer of the agent, the second how often the clock is asked before the time limit; then the list, a line
// with
// "%", the manifest. Without that line all is the manifest.

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "test/fuzz/small_cluster.h"
#include "tools/kubectl-neuron/plan.h"

namespace {

using namespace neuron::fleet;  // NOLINT

constexpr const char* kManifest =
    R"({"kind":"Deployment","metadata":{"name":"s"},"spec":{"replicas":3,"template":{"spec":{"resourceClaims":[{"name":"c",
      "resourceClaimTemplateName":"t"}],"containers":[{"name":"a","resources":{"claims":[{"name":"c"}],"limits":{"cpu":"1"}}}]}}}})";

void require(bool holds) {
  if (!holds) std::abort();
}

void require_sound(const Count& count) {
  require(!count.least || count.pods != 0);
  require(count.pods.value_or(0) >= 0);
}

void require_sound(const Plan& answer) {
  int asked = 0, placed = 0;
  bool is_short = false;
  for (const GroupPlan& group : answer.groups) {
    require_sound(group.placed);
    require_sound(group.empty_fleet);
    require(group.asked.value_or(0) >= 0 && group.placed.pods.value_or(0) <= group.asked.value_or(kMostCounted));
    require(!group.has_hardware || group.empty_fleet.pods.value_or(0) >= group.placed.pods.value_or(0));
    asked += group.asked.value_or(0);
    placed += group.placed.pods.value_or(0);
    is_short |= !group.placed.least;
  }
  require_sound(answer.placed);
  require_sound(answer.more);
  require(answer.asked.value_or(asked) == asked && answer.placed.pods.value_or(0) == placed);
  require(answer.answer != Answer::yes || placed == asked);
  require(answer.answer != Answer::no || is_short);
  for (const TypeCount& one : answer.types) require_sound(one.pods);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 2) return 0;
  std::string text(reinterpret_cast<const char*>(data + 2), size - 2);  // NOLINT
  constexpr std::string_view kBetween = "\n%\n";
  const std::size_t end = text.find(kBetween);
  const bool has_list = end != std::string::npos;
  const std::string list = has_list ? text.substr(0, end) : "";
  if (has_list) text.erase(0, end + kBetween.size());
  const Fleet fleet = make_fleet(has_list ? fuzz::documents_with(data[0] % (kKinds + 1), list)
                                          : fuzz::documents_with(static_cast<std::size_t>(Kind::events), list));
  auto manifest = parse_manifest(text.empty() ? kManifest : text, "d", fleet.classes);
  if (!manifest) return 0;
  Effort effort = fuzz::effort_of(1 + data[1]);
  const Plan answer = plan(fleet, *manifest, data[1] % 8, &effort);
  require_sound(answer);
  const std::string shown = plan_text(answer) + plan_json(answer);
  require(exit_status(answer) >= 0 && exit_status(answer) <= 2);
  require(shown.find('\x1b') == std::string::npos);
  require(nlohmann::json::accept(plan_json(answer)));
  return 0;
}
