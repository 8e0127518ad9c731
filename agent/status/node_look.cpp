#include "agent/status/node_look.h"

#include <nlohmann/json.hpp>

#include "agent/kube/json_text.h"

namespace neuron::status {
namespace {

using Json = nlohmann::json;
using kube::member_of;
using kube::text_of;

void read_labels(const Json& node, NodeLook& look) {
  const Json* labels = member_of(node, {"metadata", "labels"});
  if (labels == nullptr || !labels->is_object()) return;
  for (const auto& [key, value] : labels->items()) {
    if (value.is_string()) look.labels.emplace(key, value.get<std::string>());
  }
}

void read_conditions(const Json& node, NodeLook& look) {
  const Json* conditions = member_of(node, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return;
  for (const Json& one : *conditions) {
    std::string type = text_of(one, {"type"});
    if (type.empty()) continue;
    Condition condition{type, text_of(one, {"status"}), text_of(one, {"reason"}), text_of(one, {"message"})};
    look.conditions.emplace(std::move(type), SeenCondition{std::move(condition), text_of(one, {"lastTransitionTime"})});
  }
}

// The types in f:status.f:conditions, whose keys are texts of JSON: k:{"type":"Ready"}.
std::set<std::string> types_in(const Json& fields) {
  std::set<std::string> types;
  const Json* conditions = member_of(fields, {"f:status", "f:conditions"});
  if (conditions == nullptr || !conditions->is_object()) return types;
  for (const auto& [key, unused] : conditions->items()) {
    if (!key.starts_with("k:")) continue;
    const Json named = Json::parse(key.substr(2), nullptr, false);
    if (std::string type = text_of(named, {"type"}); !type.empty()) types.insert(std::move(type));
  }
  return types;
}

std::set<std::string> keys_in(const Json& fields) {
  std::set<std::string> keys;
  const Json* labels = member_of(fields, {"f:metadata", "f:labels"});
  if (labels == nullptr || !labels->is_object()) return keys;
  for (const auto& [key, unused] : labels->items()) {
    if (key.starts_with("f:")) keys.insert(key.substr(2));
  }
  return keys;
}

void read_owners(const Json& node, NodeLook& look) {
  const Json* entries = member_of(node, {"metadata", "managedFields"});
  if (entries == nullptr || !entries->is_array()) return;
  for (const Json& entry : *entries) {
    const Json* fields = member_of(entry, {"fieldsV1"});
    if (fields == nullptr) continue;
    const std::string manager = text_of(entry, {"manager"});
    const bool is_own = manager == kFieldManager && text_of(entry, {"operation"}) == "Apply";
    for (const std::string& key : keys_in(*fields)) {
      if (is_own) look.own_labels.insert(key);
      if (!is_own) look.label_owners[key] = manager;
    }
    for (const std::string& type : types_in(*fields)) {
      if (is_own) look.own_conditions.insert(type);
      if (!is_own) look.condition_owners[type] = manager;
    }
  }
}

}  // namespace

Result<NodeLook> parse_node(std::string_view text) {
  TRY_ASSIGN(const Json node, kube::parse_object(text, "the Node object"));
  NodeLook look;
  look.uid = text_of(node, {"metadata", "uid"});
  if (look.uid.empty()) return fail(ErrorCode::data_corrupt, "the Node object has no uid");
  read_labels(node, look);
  read_conditions(node, look);
  read_owners(node, look);
  return look;
}

Result<NodeLook> look_at_node(kube::Api& api, const std::string& name) {
  const kube::ApiCall call{.path = "/api/v1/nodes/" + kube::percent_encoded(name)};
  TRY_ASSIGN(kube::ApiReply reply, api.call(call));
  TRY_ASSIGN(const std::string body, kube::body_of(std::move(reply), call));
  return parse_node(body);
}

}  // namespace neuron::status
