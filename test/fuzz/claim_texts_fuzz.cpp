// What the API server may answer when a claim is prepared: claims, pods and opaque configuration; and what is made of
// them, which has to be a CDI file that runtimes load.

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "plugin/dra/claim/claim_config.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/claim/claim_request.h"
#include "test/unit/grant/nodes.h"
#include "tools/neuron-agent/reports.h"

namespace {

namespace dra = neuron::plugin::dra;

constexpr const char* kDriver = "neuron.aws.com";

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_cdi_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || !is_plain(name.front()) || !is_plain(name.back())) return false;
  for (const char c : name) {
    if (!is_plain(c) && std::string_view("-_.:").find(c) == std::string_view::npos) return false;
  }
  return true;
}

void check_cdi(const std::string& text) {
  const auto spec = nlohmann::json::parse(text, nullptr, false);
  require(spec.is_object() && !spec["devices"].empty());
  std::set<std::string> names;
  for (const auto& device : spec["devices"]) {
    const auto name = device["name"].get<std::string>();
    require(is_cdi_name(name) && names.insert(name).second);
    const auto& edits = device["containerEdits"];
    require(edits.contains("deviceNodes") || edits.contains("env"));
  }
}

void prepare(const dra::ResourceClaim& claim, const neuron::grant::NodeUnits& node) {
  const auto plan = dra::plan_of(claim, node, "n1", {"neuron.aws.com/unhealthy", "NoSchedule"});
  if (!plan) {
    require(!plan.error().message.empty());
    return;
  }
  dra::ClaimUse use;
  use.claims[claim.name] = {plan->shares, std::nullopt, ""};
  use.containers = {{"pod/one", {{claim.name, {}}}}};
  const neuron::grant::GrantOptions options;
  const dra::GrantFacts facts{node, options};
  const auto environments = dra::environments_of(facts, claim.name, use);
  if (!environments) return;
  const auto grant = dra::grant_of_claim(facts, kDriver, "uid-1", plan->devices, *environments);
  require(grant.devices.size() == plan->devices.size());
  if (!grant.cdi_text.empty()) check_cdi(grant.cdi_text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const auto node = neuron::node_of("trn2.48xlarge");
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto claim = dra::parse_resource_claim(text, kDriver)) {
    require(!claim->name.empty() && !claim->uid.empty());
    for (const auto& result : claim->results) static_cast<void>(dra::config_for(claim->configs, result.full_request()));
    prepare(*claim, *node);
  }
  if (const auto config = dra::config_for({{false, {}, text}}, "r")) {
    require(!config->lnc || *config->lnc == 1 || *config->lnc == 2);
    require(!config->ultraserver_mode || *config->ultraserver_mode <= 4);
  }
  // YAML too, by neuron::kube::read_documents.
  if (const auto checked = neuron::agent::check_claims(text, kDriver)) {
    for (const auto& fault : checked->findings) {
      require(fault.evidence.size() == 1 && fault.evidence[0].value.size() <= 160);
      require(!fault.evidence[0].path.empty() && !fault.sentence.empty() && !fault.fix.empty());
    }
  }
  if (const auto pod = dra::parse_pod_use(text)) {
    require(!pod->uid.empty());
    for (const auto& container : pod->containers) require(!container.claims.empty());
  }
  return 0;
}
