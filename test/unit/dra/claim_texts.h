#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

// Claims and pods as an API server answers them.
namespace neuron::plugin::dra {

using nlohmann::json;

struct ResultText {
  std::string request;
  std::string device;
  std::string driver = "neuron.aws.com";
  std::string pool = "n1";
  json more = json::object();
};

inline json claim_json(const std::string& name, const std::string& uid, const std::vector<ResultText>& results,
                       const json& configs = json::array()) {
  json list = json::array();
  for (const ResultText& one : results) {
    json result = {{"request", one.request}, {"driver", one.driver}, {"pool", one.pool}, {"device", one.device}};
    result.update(one.more);
    list.push_back(std::move(result));
  }
  return {{"metadata", {{"namespace", "default"}, {"name", name}, {"uid", uid}, {"resourceVersion", "7"}}},
          {"spec", {{"devices", {{"requests", json::array()}}}}},
          {"status",
           {{"allocation", {{"devices", {{"results", std::move(list)}, {"config", configs}}}}},
            {"reservedFor", json::array()}}}};
}

inline json config_json(const std::string& source, const std::vector<std::string>& requests, const json& parameters,
                        const std::string& driver = "neuron.aws.com") {
  return {{"source", source}, {"requests", requests}, {"opaque", {{"driver", driver}, {"parameters", parameters}}}};
}

inline json neuron_config(int lnc, const std::string& version = "neuron.aws.com/v1") {
  return {{"apiVersion", version}, {"kind", "NeuronConfig"}, {"logicalNeuronCore", lnc}};
}

inline void reserve_for(json& claim, const std::string& pod, const std::string& uid) {
  claim["status"]["reservedFor"].push_back({{"resource", "pods"}, {"name", pod}, {"uid", uid}});
}

inline void reserve_for_group(json& claim, const std::string& group) {
  claim["status"]["reservedFor"].push_back(
      {{"apiGroup", "scheduling.k8s.io"}, {"resource", "podgroups"}, {"name", group}, {"uid", "uid-" + group}});
}

// What a container uses: {claim of the pod, request or ""}.
struct ContainerText {
  std::string name;
  std::vector<std::pair<std::string, std::string>> uses;
  bool is_init = false;
};

// A pod whose claims have the names that it gives them.
inline json pod_json(const std::string& name, const std::string& uid, const std::vector<ContainerText>& containers) {
  json pod = {
      {"metadata", {{"namespace", "default"}, {"name", name}, {"uid", uid}}},
      {"spec", {{"resourceClaims", json::array()}, {"containers", json::array()}, {"initContainers", json::array()}}},
      {"status", {{"phase", "Pending"}}}};
  for (const ContainerText& one : containers) {
    json claims = json::array();
    for (const auto& [claim, request] : one.uses) {
      json use = {{"name", claim}};
      if (!request.empty()) use["request"] = request;
      claims.push_back(std::move(use));
      pod["spec"]["resourceClaims"].push_back({{"name", claim}, {"resourceClaimName", claim}});
    }
    pod["spec"][one.is_init ? "initContainers" : "containers"].push_back(
        {{"name", one.name}, {"resources", {{"claims", std::move(claims)}}}});
  }
  return pod;
}

}  // namespace neuron::plugin::dra
