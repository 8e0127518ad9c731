#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/hardware.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/parse.h"
#include "tools/kubectl-neuron/replacements.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

// Kind of the value at a path of an object; lists are transparent.
using Rules = std::map<std::string, std::string>;  // path -> a kind of name, or one of these:
constexpr const char* kSentence = "(sentence)";
constexpr const char* kPlain = "(plain)";      // where no rule is: is_plain(), else as a sentence
constexpr const char* kLabels = "(labels)";    // an object of labels
constexpr const char* kRule = "(label rule)";  // an object with key, value, values
constexpr const char* kImage = "(image)";
constexpr const char* kSerial = "(serial)";    // 16 hexadecimal digits
constexpr const char* kNothing = "(nothing)";  // becomes null
constexpr const char* kKeys = "(keys)";        // an object by names of resources
constexpr const char* kNames = "(names)";      // an object by names of capacities, counters or attributes, walked on
constexpr const char* kResource = "(resource)";
constexpr const char* kRequest = "(request)";  // "request" or "request/alternative"
constexpr const char* kClass = "(class)";
constexpr const char* kDriver = "(driver)";
constexpr const char* kAttribute = "(attribute)";  // "domain/name"
constexpr const char* kExpression = "(expression)";
constexpr const char* kArgument = "(argument)";
constexpr const char* kVersion = "(version)";
constexpr const char* kDevice = "(device)";  // of a pool
constexpr const char* kValue = "(value)";    // of an attribute

// Of a claim or template whose devices are at `path`.
void add_request_rules(Rules& rules, const std::string& path) {
  for (const char* inner : {"requests", "requests.exactly", "requests.firstAvailable"}) {
    const std::string request = path + "." + inner;
    rules.insert({{request + ".name", kRequest},
                  {request + ".deviceClassName", kClass},
                  {request + ".selectors.cel.expression", kExpression},
                  {request + ".capacity.requests", kNames},
                  {request + ".tolerations", kRule}});
  }
  rules.insert({{path + ".constraints.requests", kRequest},
                {path + ".constraints.matchAttribute", kAttribute},
                {path + ".constraints.distinctAttribute", kAttribute}});
}

const Rules& rules_of(Kind kind) {
  static const Rules kObject = {
      {"metadata.namespace", "namespace"}, {"metadata.uid", "uid"}, {"metadata.ownerReferences.name", "owner"}};
  static const auto with = [](Rules rules, const std::string& devices = "") {
    rules.insert(kObject.begin(), kObject.end());
    if (!devices.empty()) add_request_rules(rules, devices);
    return rules;
  };
  static const std::map<Kind, Rules> kRules = {
      {Kind::nodes, with({{"metadata.name", "node"},
                          {"metadata.labels", kLabels},
                          {"spec.taints", kRule},
                          {"status.allocatable", kKeys},
                          {"status.capacity", kKeys},
                          {"status.nodeInfo.kubeletVersion", kVersion},
                          {"status.conditions.message", kSentence}})},
      {Kind::pods,
       with({{"metadata.name", "pod"},
             {"metadata.labels", kLabels},
             {"spec.nodeName", "node"},
             {"spec.schedulerName", "scheduler"},
             {"spec.schedulingGates.name", "gate"},
             {"spec.nodeSelector", kLabels},
             {"spec.tolerations", kRule},
             {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms."
              "matchExpressions",
              kRule},
             {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchFields",
              kRule},
             {"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", kNothing},
             {"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.labelSelector.matchLabels",
              kLabels},
             {"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.labelSelector."
              "matchExpressions",
              kRule},
             {"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.namespaces", "namespace"},
             {"spec.containers.name", "container"},
             {"spec.containers.image", kImage},
             {"spec.containers.args", kArgument},
             {"spec.overhead", kKeys},
             {"spec.resources.limits", kKeys},
             {"spec.resources.requests", kKeys},
             {"spec.containers.resources.limits", kKeys},
             {"spec.containers.resources.requests", kKeys},
             {"spec.containers.resources.claims.name", "podclaim"},
             {"spec.containers.resources.claims.request", kRequest},
             {"spec.initContainers.name", "container"},
             {"spec.initContainers.resources.limits", kKeys},
             {"spec.initContainers.resources.requests", kKeys},
             {"spec.initContainers.resources.claims.name", "podclaim"},
             {"spec.initContainers.resources.claims.request", kRequest},
             {"spec.resourceClaims.name", "podclaim"},
             {"status.resourceClaimStatuses.name", "podclaim"},
             {"status.extendedResourceClaimStatus.requestMappings.containerName", "container"},
             {"status.extendedResourceClaimStatus.requestMappings.requestName", kRequest},
             {"status.extendedResourceClaimStatus.requestMappings.resourceName", kResource},
             {"spec.resourceClaims.resourceClaimName", "claim"},
             {"spec.resourceClaims.resourceClaimTemplateName", "template"},
             {"status.resourceClaimStatuses.resourceClaimName", "claim"},
             {"status.extendedResourceClaimStatus.resourceClaimName", "claim"},
             {"status.message", kSentence},
             {"status.initContainerStatuses.name", "container"},
             {"status.initContainerStatuses.state.waiting.message", kSentence},
             {"status.containerStatuses.name", "container"},
             {"status.containerStatuses.state.waiting.message", kSentence},
             {"status.conditions.message", kSentence}})},
      {Kind::slices,
       {{"metadata.name", "slice"},
        {"spec.nodeName", "node"},
        {"spec.pool.name", "node"},
        {"spec.driver", kDriver},
        {"spec.nodeSelector", kNothing},
        {"spec.devices.taints", kRule},
        {"spec.devices.name", kDevice},
        {"spec.devices.attributes", kNames},
        {"spec.devices.capacity", kNames},
        {"spec.devices.consumesCounters.counters", kNames},
        {"spec.sharedCounters.counters", kNames},
        {"spec.devices.attributes.serial.string", kSerial},
        {"spec.devices.attributes.networkNodeLayer1.string", "layer"},
        {"spec.devices.attributes.networkNodeLayer2.string", "layer"},
        {"spec.devices.attributes.networkNodeLayer3.string", "layer"}}},
      {Kind::claims, with({{"metadata.name", "claim"},
                           {"status.allocation.devices.results.pool", "node"},
                           {"status.allocation.devices.results.device", kDevice},
                           {"status.allocation.devices.results.driver", kDriver},
                           {"status.allocation.devices.results.consumedCapacity", kNames},
                           {"status.allocation.devices.results.request", kRequest},
                           {"status.allocation.devices.results.tolerations", kRule},
                           {"status.reservedFor.name", "pod"},
                           {"status.reservedFor.uid", "uid"}},
                          "spec.devices")},
      {Kind::claim_templates, with({{"metadata.name", "template"}}, "spec.spec.devices")},
      {Kind::device_classes,
       {{"metadata.name", kClass},
        {"spec.extendedResourceName", kResource},
        {"spec.selectors.cel.expression", kExpression}}},
      {Kind::events,
       {{"involvedObject.namespace", "namespace"},
        {"involvedObject.name", "(involved)"},
        {"involvedObject.uid", "uid"},
        {"message", kSentence}}},
  };
  return kRules.at(kind);
}

// Whether the driver of this project published the slice, under whatever name.
bool is_own_slice(const json& spec) {
  return std::ranges::any_of(kube::list_of(spec, "devices"), [](const json& device) {
    const std::string type = kube::text_of(device, {"attributes", "resourceType", "string"});
    return type.starts_with("neuron_") || type == "efa";
  });
}

class Anonymiser {
 public:
  void run(Documents& documents) {
    // Also of a dump of an older version no more than is read.
    for (const Kind kind : kAllKinds) {
      for (std::string& page : documents.list(kind)) {
        auto kept = kept_page(kind, page);
        page = kept ? std::move(kept->text) : "";
      }
    }
    number_names(documents);
    // Nodes first, so that the names of pools are known as theirs; sentences last, once all names are known.
    for (const bool is_last : {false, true}) {
      sentences_ = is_last;
      for (const Kind kind : kAllKinds) {
        for (std::string& page : documents.list(kind)) rewrite(page, rules_of(kind));
      }
      for (auto& [node, answer] : documents.agents) anonymise_report(answer, is_last, names_);
    }
    std::map<std::string, AgentAnswer> agents;
    for (auto& [node, answer] : documents.agents) {
      answer.pod = names_.of_pod(answer.pod);
      answer.missing = names_.in_sentence(answer.missing);
      agents.emplace(names_.of("node", node), std::move(answer));
    }
    documents.agents = std::move(agents);
    documents.default_namespace = names_.of("namespace", documents.default_namespace);
    for (std::string& sentence : documents.unknown) sentence = names_.in_sentence(sentence);
  }

 private:
  void number_names(const Documents& documents) {
    std::set<std::string> nodes, namespaces, pods;
    for (const Kind kind : {Kind::nodes, Kind::pods, Kind::slices}) {
      for (const std::string& page : documents.list(kind)) {
        const auto document = kube::parse_object(page, "");
        if (!document) continue;
        for (const json& item : kube::list_of(*document, "items")) {
          const json& metadata = kube::member(item, "metadata");
          const json& spec = kube::member(item, "spec");
          if (kind == Kind::slices && is_own_slice(spec)) own_drivers_.insert(kube::text_of(spec, "driver"));
          if (kind == Kind::slices) continue;
          (kind == Kind::nodes ? nodes : pods).insert(kube::text_of(metadata, "name"));
          namespaces.insert(kube::text_of(metadata, "namespace"));
        }
      }
    }
    names_.number("node", nodes);
    names_.number("namespace", namespaces);
    names_.number("pod", pods);
  }

  [[nodiscard]] bool is_own_driver(const std::string& driver) const {
    return driver.ends_with(".aws.com") || own_drivers_.contains(driver);
  }

  void rewrite(std::string& text, const Rules& rules) {
    if (text.empty()) return;
    auto document = kube::parse_object(text, "");
    if (!document) {
      text.clear();  // what cannot be read cannot be anonymised
      return;
    }
    if (!document->contains("items")) return;
    for (json& item : (*document)["items"]) {
      if (!sentences_) hide_foreign(item);
      walk(item, "", rules);
    }
    text = document->dump(-1, ' ', false, json::error_handler_t::replace);
  }

  // Of slices and allocations of other drivers the devices' names go, and their attributes.
  void hide_foreign(json& item) {
    if (!item.is_object()) return;
    if (item.contains("spec") && item["spec"].is_object() && item["spec"].contains("driver") &&
        !is_own_driver(kube::text_of(item["spec"], "driver"))) {
      json& spec = item["spec"];
      json devices = json::array();
      for (const json& device : kube::list_of(spec, "devices"))
        devices.push_back({{"name", names_.of("device", kube::text_of(device, "name"))}});
      spec["devices"] = std::move(devices);
      spec.erase("sharedCounters");
    }
    const json::json_pointer results("/status/allocation/devices/results");
    if (!item.contains(results) || !item[results].is_array()) return;
    for (json& result : item[results]) {
      if (!result.is_object() || is_own_driver(kube::text_of(result, "driver"))) continue;
      result["device"] = names_.of("device", kube::text_of(result, "device"));
      result.erase("consumedCapacity");
    }
  }

  void walk(json& value, const std::string& path, const Rules& rules) {
    const auto rule = rules.find(path);
    if (value.is_array()) {
      for (json& item : value) walk(item, path, rules);
    } else if (rule != rules.end() && rule->second != kNames) {
      apply(value, rule->second);
    } else if (value.is_string()) {
      apply(value, path.starts_with("spec.devices.attributes.") ? kValue : kPlain);
    } else if (value.is_object()) {
      if (path == "involvedObject") involved_ = kube::text_of(value, "kind");
      if (rule != rules.end() && !sentences_) rename_members(value);
      for (auto& [key, member] : value.items()) walk(member, path.empty() ? key : path + "." + key, rules);
    }
  }

  void apply(json& value, const std::string& rule) {
    if (sentences_ != (rule == kSentence || rule == kPlain)) return;
    if (rule == kNothing) {
      value = nullptr;
    } else if (rule == kLabels) {
      rewrite_labels(value);
    } else if (rule == kRule) {
      rewrite_rule(value);
    } else if (rule == kKeys) {
      rewrite_keys(value);
    } else if (value.is_string()) {
      value = text_for(value.get<std::string>(), rule);
    }
  }

  std::string text_for(const std::string& text, const std::string& rule) {
    if (rule == kSentence) return names_.in_sentence(text);
    if (rule == kPlain) return is_plain(text) ? text : names_.in_sentence(text);
    if (rule == kVersion) return text.starts_with("v") ? "v" + public_version(text.substr(1)) : public_version(text);
    if (rule == kDevice) return core::parse_pool_name(text) ? text : names_.of("device", text);
    if (rule == kValue) return is_public_attribute(text) ? text : names_.of("value", text);
    if (rule == kImage) return public_image(text);
    if (rule == kResource) return resource_for(text);
    if (rule == kClass) return is_public_class(text) ? text : names_.of("class", text);
    if (rule == kDriver) return is_public_domain(text) ? text : names_.of("driver", text);
    if (rule == kAttribute) return names_.of_key("attribute", text);
    if (rule == kExpression) return names_.in_expression(text, own_drivers_);
    if (rule == kRequest) return request_for(text);
    if (rule == kArgument) return text.starts_with(kTls) ? kTls : "";
    if (rule == kSerial) return names_.of_serial(text);
    if (rule == "(involved)")
      return names_.of(involved_ == "Node" ? "node" : involved_ == "Pod" ? "pod" : "object", text);
    return names_.of(rule, text);
  }

  std::string resource_for(const std::string& text) {
    constexpr std::string_view kOfClass = "deviceclass.resource.kubernetes.io/";
    if (text.starts_with(kOfClass)) return std::string(kOfClass) + text_for(text.substr(kOfClass.size()), kClass);
    return is_core_resource(text) ? text : names_.of_key("resource", text);
  }
  std::string request_for(const std::string& text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos) return names_.of("request", text);
    return names_.of("request", text.substr(0, slash)) + "/" + names_.of("request", text.substr(slash + 1));
  }
  void rewrite_keys(json& amounts) {
    if (!amounts.is_object()) return;
    json out = json::object();
    for (auto& [name, amount] : amounts.items()) {
      const bool is_amount = amount.is_number() || (amount.is_string() && is_quantity(amount.get_ref<std::string&>()));
      if (!is_amount && thousandths_of(amount)) continue;
      out[resource_for(name)] = is_amount ? std::move(amount) : json("removed");  // as little an amount as it was
    }
    amounts = std::move(out);
  }

  void rename_members(json& object) {
    json out = json::object();
    for (auto& [name, member] : object.items()) {
      out[is_public_name(name) ? name : names_.of_key("attribute", name)] = std::move(member);
    }
    object = std::move(out);
  }

  std::string key_for(const std::string& key) { return key == kNameField ? key : names_.of_key("label", key); }
  std::string value_for(const std::string& key, const std::string& value) {
    if (key == kNameField || key == "kubernetes.io/hostname") return names_.of("node", value);
    if (is_public_value(key, value)) return value;
    if (key == "app.kubernetes.io/name" && value.starts_with(kOwnApp)) return kOwnApp;
    return names_.of("value", value);
  }
  void rewrite_labels(json& labels) {
    if (!labels.is_object()) return;
    json out = json::object();
    for (const auto& [key, value] : labels.items()) {
      out[key_for(key)] = value.is_string() ? json(value_for(key, value.get<std::string>())) : json(nullptr);
    }
    labels = std::move(out);
  }
  void rewrite_rule(json& rule) {
    const std::string key = kube::text_of(rule, "key", 512);
    if (!rule.is_object()) return;
    for (auto& [name, member] : rule.items()) {
      const bool is_own = name == "key" || name == "value" || name == "values";
      if (!is_own && !member.is_number() && !(member.is_string() && is_plain(member.get_ref<std::string&>())))
        member = nullptr;
    }
    if (rule.contains("key")) rule["key"] = key_for(key);
    if (rule.contains("value") && rule["value"].is_string()) rule["value"] = value_for(key, rule["value"]);
    if (!rule.contains("values") || !rule["values"].is_array()) return;
    for (json& value : rule["values"]) {
      if (value.is_string()) value = value_for(key, value.get<std::string>());
    }
  }

  static constexpr const char* kNameField = "metadata.name";  // the one that matchFields may have
  static constexpr const char* kOwnApp = "neuron-agent";
  static constexpr const char* kTls = "--metrics-tls-cert";

  Replacements names_;
  std::set<std::string> own_drivers_;
  std::string involved_;
  bool sentences_ = false;
};

}  // namespace

void anonymise(Documents& documents) {
  Anonymiser().run(documents);
}

}  // namespace neuron::fleet
