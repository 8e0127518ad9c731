#include "agent/status/node_apply.h"

#include <nlohmann/json.hpp>

#include "agent/base/utc_text.h"

namespace neuron::status {
namespace {

using Json = nlohmann::json;

Json node_json(const NodeRef& node) {
  return {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", node.name}, {"uid", node.uid}}}};
}

Result<void> apply(kube::Api& api, const NodeRef& node, const char* subresource, const Json& body, Force force) {
  kube::ApiCall call{.method = kube::Method::apply,
                     .path = "/api/v1/nodes/" + kube::percent_encoded(node.name) + subresource,
                     .query = std::string("fieldManager=") + kFieldManager,
                     .body = body.dump(-1, ' ', false, Json::error_handler_t::replace),
                     .accept = kube::kMetadataOnly};
  if (force == Force::yes) call.query += "&force=true";
  TRY_ASSIGN(kube::ApiReply reply, api.call(call));
  TRY(kube::body_of(std::move(reply), call));
  return {};
}

}  // namespace

Result<void> apply_labels(kube::Api& api, const NodeRef& node, const std::map<std::string, std::string>& labels,
                          Force force) {
  Json body = node_json(node);
  if (!labels.empty()) body["metadata"]["labels"] = labels;
  return apply(api, node, "", body, force);
}

Result<void> apply_conditions(kube::Api& api, const NodeRef& node, const std::vector<TimedCondition>& conditions,
                              const std::vector<HeldCondition>& held, WallTime now) {
  Json body = node_json(node);
  for (const HeldCondition& one : held) {
    Json entry(one.fields);
    entry["type"] = one.type;
    body["status"]["conditions"].push_back(std::move(entry));
  }
  for (const auto& [condition, last_transition] : conditions) {
    body["status"]["conditions"].push_back({{"type", condition.type},
                                            {"status", condition.status},
                                            {"reason", condition.reason},
                                            {"message", condition.message},
                                            {"lastHeartbeatTime", utc_text(now)},
                                            {"lastTransitionTime", last_transition}});
  }
  return apply(api, node, "/status", body, Force::no);
}

Result<void> withdraw(kube::Api& api, const std::string& node) {
  const auto look = look_at_node(api, node);
  if (!look && look.error().code == ErrorCode::not_found) return {};
  if (!look) return fail(look.error());
  const NodeRef ref{node, look->uid};
  if (!look->own_labels.empty()) TRY(apply_labels(api, ref, {}, Force::no));
  if (!look->own_conditions.empty()) TRY(apply_conditions(api, ref, {}, look->held, {}));
  return {};
}

}  // namespace neuron::status
