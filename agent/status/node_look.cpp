#include "agent/status/node_look.h"

#include <nlohmann/json.hpp>

#include "agent/kube/answers.h"

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

// The types in f:status.f:conditions, whose keys are texts of JSON, k:{"type":"Ready"}, each with the names of its
// fields.
std::map<std::string, std::set<std::string>> types_in(const Json& fields) {
  std::map<std::string, std::set<std::string>> types;
  const Json* conditions = member_of(fields, {"f:status", "f:conditions"});
  if (conditions == nullptr || !conditions->is_object()) return types;
  for (const auto& [key, names] : conditions->items()) {
    if (!key.starts_with("k:") || !names.is_object()) continue;
    const Json named = Json::parse(key.substr(2), nullptr, false);
    std::string type = text_of(named, {"type"});
    if (type.empty()) continue;
    auto& own = types[std::move(type)];
    for (const auto& [name, unused] : names.items()) {
      if (name.starts_with("f:")) own.insert(name.substr(2));
    }
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

HeldCondition held(const Json& node, const std::string& type, const std::set<std::string>& names) {
  HeldCondition held{type, {}};
  const Json* conditions = member_of(node, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return held;
  for (const Json& one : *conditions) {
    if (text_of(one, {"type"}) != type) continue;
    for (const std::string& name : names) {
      const std::string value = text_of(one, {name.c_str()});
      if (name != "type" && !value.empty()) held.fields[name] = value;
    }
  }
  return held;
}

void read_owners(const Json& node, NodeLook& look) {
  const Json* entries = member_of(node, {"metadata", "managedFields"});
  if (entries == nullptr || !entries->is_array()) return;
  std::map<std::string, std::set<std::string>> own_fields;  // of conditions, by type
  for (const Json& entry : *entries) {
    const Json* fields = member_of(entry, {"fieldsV1"});
    if (fields == nullptr) continue;
    const std::string manager = text_of(entry, {"manager"});
    const bool is_own = manager == kFieldManager && text_of(entry, {"operation"}) == "Apply";
    for (const std::string& key : keys_in(*fields)) {
      if (is_own) look.own_labels.insert(key);
      if (!is_own) look.label_owners[key] = manager;
    }
    for (auto& [type, names] : types_in(*fields)) {
      if (!is_own) look.condition_owners[type] = manager;
      if (!is_own) continue;
      look.own_conditions.insert(type);
      own_fields[type].merge(names);
    }
  }
  for (const auto& [type, names] : own_fields) {
    if (look.condition_owners.contains(type)) look.held.push_back(held(node, type, names));
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
