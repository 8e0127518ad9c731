#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/parse.h"

namespace neuron::fleet {
namespace {

using kube::member;
using nlohmann::json;

bool is_object_or_absent(const json& value) {
  return value.is_null() || value.is_object();
}

// A list of objects, or absent.
bool is_list_or_absent(const json& value) {
  if (value.is_null()) return true;
  if (!value.is_array()) return false;
  for (const json& item : value) {
    if (!item.is_object()) return false;
  }
  return true;
}

bool is_pod_understood(const json& spec) {
  return is_list_or_absent(member(spec, "containers")) && is_list_or_absent(member(spec, "initContainers")) &&
         is_list_or_absent(member(spec, "resourceClaims"));
}

bool is_node_understood(const json& item) {
  const json& status = member(item, "status");
  return is_object_or_absent(member(status, "allocatable")) && is_object_or_absent(member(status, "capacity")) &&
         is_object_or_absent(member(member(item, "metadata"), "labels")) &&
         is_list_or_absent(member(member(item, "spec"), "taints"));
}

}  // namespace

bool is_understood(Kind kind, const json& item) {
  const json& metadata = member(item, "metadata");
  if (!is_object_or_absent(metadata)) return false;
  if (kind == Kind::events) return item.is_object();
  // Everything that is listed has a name; what has none is no object.
  const json& space = member(metadata, "namespace");
  if (kube::text_of(metadata, "name").empty() || !(space.is_null() || space.is_string())) return false;
  const json& spec = member(item, "spec");
  if (!is_object_or_absent(spec) || !is_object_or_absent(member(item, "status"))) return false;
  if (kind == Kind::pods) return is_pod_understood(spec);
  return kind != Kind::nodes || is_node_understood(item);
}

std::string place_of(const json& item, std::size_t number) {
  const std::string name = kube::text_of(member(item, "metadata"), "name");
  return name.empty() ? "number " + std::to_string(number) : printable(name);
}

}  // namespace neuron::fleet
