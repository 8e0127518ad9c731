#include "agent/kube/node_label.h"

#include <nlohmann/json.hpp>

#include "agent/kube/api.h"
#include "agent/kube/names.h"

namespace neuron::kube {

Result<std::optional<std::string>> label_in(std::string_view answer, const std::string& label,
                                            const std::string& where) {
  const auto object = nlohmann::json::parse(answer, nullptr, false);
  const auto metadata = object.is_object() ? object.find("metadata") : object.end();
  if (metadata == object.end() || !metadata->is_object()) {
    return fail(ErrorCode::data_corrupt, where + "'s answer is not an API object");
  }
  const auto labels = metadata->find("labels");
  if (labels == metadata->end() || !labels->is_object()) return std::optional<std::string>();
  const auto value = labels->find(label);
  if (value == labels->end()) return std::optional<std::string>();
  if (!value->is_string()) return fail(ErrorCode::data_corrupt, where + ": the label " + label + " is not a string");
  return value->get<std::string>();
}

Result<std::optional<std::string>> node_label(const ClusterAccess& access, const std::string& node,
                                              const std::string& label, const GetLimits& limits) {
  TRY(check_node_name(node));
  TRY(check_label_key(label));
  const std::string path = "/api/v1/nodes/" + node;
  TRY_ASSIGN(const std::string body, api_get(access, path, kMetadataOnly, limits));
  return label_in(body, label, access.url + path);
}

}  // namespace neuron::kube
