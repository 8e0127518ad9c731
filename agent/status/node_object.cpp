#include "agent/status/node_object.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/base/clock.h"
#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/kube/answers.h"
#include "agent/kube/api_client.h"
#include "agent/status/status_report.h"

namespace neuron::status {
namespace {

using Json = nlohmann::json;
using kube::member_of;
using kube::text_of;

void read_labels(const Json& node, SeenNode& seen) {
  const Json* labels = member_of(node, {"metadata", "labels"});
  if (labels == nullptr || !labels->is_object()) return;
  for (const auto& [key, value] : labels->items()) {
    if (value.is_string()) seen.labels.emplace(key, value.get<std::string>());
  }
}

void read_conditions(const Json& node, SeenNode& seen) {
  const Json* conditions = member_of(node, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return;
  for (const Json& one : *conditions) {
    std::string type = text_of(one, {"type"});
    if (type.empty()) continue;
    Condition condition{type, text_of(one, {"status"}), text_of(one, {"reason"}), text_of(one, {"message"})};
    seen.conditions.emplace(std::move(type),
                            TimedCondition{std::move(condition), text_of(one, {"lastTransitionTime"})});
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

void read_owners(const Json& node, SeenNode& seen) {
  const Json* entries = member_of(node, {"metadata", "managedFields"});
  if (entries == nullptr || !entries->is_array()) return;
  std::map<std::string, std::set<std::string>> own_fields;  // of conditions, by type
  for (const Json& entry : *entries) {
    const Json* fields = member_of(entry, {"fieldsV1"});
    if (fields == nullptr) continue;
    const std::string manager = text_of(entry, {"manager"});
    const bool is_own = manager == kFieldManager && text_of(entry, {"operation"}) == "Apply";
    for (const std::string& key : keys_in(*fields)) {
      if (is_own) seen.own_labels.insert(key);
      if (!is_own) seen.label_owners[key] = manager;
    }
    for (auto& [type, names] : types_in(*fields)) {
      if (!is_own) seen.condition_owners[type] = manager;
      if (!is_own) continue;
      seen.own_conditions.insert(type);
      own_fields[type].merge(names);
    }
  }
  for (const auto& [type, names] : own_fields) {
    if (seen.condition_owners.contains(type)) seen.held.push_back(held(node, type, names));
  }
}

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

constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

bool is_shown(const Json& node, const std::vector<std::string>& resources) {
  bool any = false;
  bool all = true;
  for (const std::string& name : resources) {
    const bool is_driver = name.find('/') == std::string::npos;
    const std::string count = text_of(node, {"status", "allocatable", name.c_str()});
    all = all && (is_driver || !count.empty());
    any = any || is_driver || (!count.empty() && count != "0");
  }
  return any && all;
}

bool is_meant(const Json& entry, const StartupTaint& taint) {
  return text_of(entry, {"key"}) == taint.key && (taint.effect.empty() || text_of(entry, {"effect"}) == taint.effect);
}

}  // namespace

Result<SeenNode> parse_node(std::string_view text) {
  TRY_ASSIGN(const Json node, kube::parse_object(text, "the Node object"));
  SeenNode seen;
  seen.uid = text_of(node, {"metadata", "uid"});
  if (seen.uid.empty()) return fail(ErrorCode::data_corrupt, "the Node object has no uid");
  read_labels(node, seen);
  read_conditions(node, seen);
  read_owners(node, seen);
  return seen;
}

Result<SeenNode> read_node(kube::Api& api, const std::string& name) {
  const kube::ApiCall call{.path = "/api/v1/nodes/" + kube::percent_encoded(name)};
  TRY_ASSIGN(kube::ApiReply reply, api.call(call));
  TRY_ASSIGN(const std::string body, kube::body_of(std::move(reply), call));
  return parse_node(body);
}

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
  const auto seen = read_node(api, node);
  if (!seen && seen.error().code == ErrorCode::not_found) return {};
  if (!seen) return fail(seen.error());
  const NodeRef ref{node, seen->uid};
  if (!seen->own_labels.empty()) TRY(apply_labels(api, ref, {}, Force::no));
  if (!seen->own_conditions.empty()) TRY(apply_conditions(api, ref, {}, seen->held, {}));
  return {};
}

Result<void> withdraw(const kube::ApiFlags& flags, const std::string& node) {
  if (auto name = kube::check_node_name(node); !name) {
    return fail(std::move(name).error().with_context("--node-name"));
  }
  TRY_ASSIGN(kube::ApiPlaces places, kube::api_places(flags, kube::in_cluster_places()));
  kube::ApiClient client(std::move(places));
  return withdraw(client, node);
}

Result<StartupTaint> parse_startup_taint(std::string_view text) {
  const auto colon = text.find(':');
  StartupTaint taint{std::string(text.substr(0, colon)), ""};
  if (colon != std::string_view::npos) taint.effect = text.substr(colon + 1);
  const bool has_effect = colon == std::string_view::npos || std::ranges::count(kEffects, taint.effect) > 0;
  if (has_effect && taint.key.starts_with(kOwnPrefix) && kube::check_label_key(taint.key)) return taint;
  return fail(ErrorCode::invalid_argument,
              "\"" + printable(text) +
                  "\" is not a startup taint: use neuron-agent/NAME or neuron-agent/NAME:EFFECT, such as "
                  "neuron-agent/starting:NoSchedule; effects are NoSchedule, PreferNoSchedule and NoExecute");
}

std::string to_string(const StartupTaint& taint) {
  return taint.key + (taint.effect.empty() ? "" : ":" + taint.effect);
}

Result<TaintState> remove_startup_taint(kube::Api& api, const std::string& node, const StartupTaint& taint,
                                        const std::vector<std::string>& resources) {
  const std::string path = "/api/v1/nodes/" + kube::percent_encoded(node);
  const kube::ApiCall get{.path = path};
  TRY_ASSIGN(kube::ApiReply reply, api.call(get));
  TRY_ASSIGN(const std::string body, kube::body_of(std::move(reply), get));
  TRY_ASSIGN(const Json object, kube::parse_object(body, "the Node object"));
  const Json* taints = member_of(object, {"spec", "taints"});
  const auto meant = [&taint](const Json& entry) { return is_meant(entry, taint); };
  if (taints == nullptr || !taints->is_array() || std::ranges::none_of(*taints, meant)) return TaintState::absent;
  if (!is_shown(object, resources)) return TaintState::waiting;
  Json rest = Json::array();
  std::ranges::copy_if(*taints, std::back_inserter(rest), [&](const Json& entry) { return !meant(entry); });
  // The list is one field: with the version, so that a taint that was added meanwhile is not lost.
  const Json patch = {{"metadata",
                       {{"uid", text_of(object, {"metadata", "uid"})},
                        {"resourceVersion", text_of(object, {"metadata", "resourceVersion"})}}},
                      {"spec", {{"taints", rest.empty() ? Json() : std::move(rest)}}}};
  const kube::ApiCall write{.method = kube::Method::merge_patch,
                            .path = path,
                            .query = "fieldManager=neuron-agent",
                            .body = patch.dump(-1, ' ', false, Json::error_handler_t::replace),
                            .accept = kube::kMetadataOnly};
  TRY_ASSIGN(kube::ApiReply written, api.call(write));
  TRY(kube::body_of(std::move(written), write));
  return TaintState::removed;
}

bool is_offered(const model::HostScan& host, const std::map<std::string, bool>& registered) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  const int promised = type != nullptr ? type->device_count : host.neuron_pci_functions;
  if (promised > 0 && host.devices.empty()) return false;
  return !registered.empty() && std::ranges::all_of(registered, [](const auto& one) { return one.second; });
}

std::chrono::milliseconds StartupGate::turn(const std::vector<std::string>& registered, SteadyTime now) {
  if (!taint_ || is_done_ || registered.empty()) return kIdle;
  if (now >= not_before_) {
    const auto state = remove_startup_taint(api_, node_, *taint_, registered);
    is_done_ = state && *state != TaintState::waiting;
    if (state) error_.clear();
    if (state && *state == TaintState::removed) spdlog::info("startup taint removed taint={}", to_string(*taint_));
    if (!state && error_ != state.error().message) {
      error_ = state.error().message;
      spdlog::warn("startup taint not removed, pods stay off this node: {}", error_);
    }
    if (is_done_) return kIdle;
    not_before_ = now + (state ? kWaiting : backoff_.next());
  }
  return std::chrono::ceil<std::chrono::milliseconds>(not_before_ - now);
}

}  // namespace neuron::status
