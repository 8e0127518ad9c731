#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/dump.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

// Replacements, the same for the same text everywhere: "ip-10-0-1-7.ec2.internal" -> "node-3".
class Names {
 public:
  std::string of(const std::string& kind, const std::string& text) {
    if (text.empty() || is_kept(text)) return text;
    auto& names = kinds_[kind];
    const auto [found, is_new] = names.try_emplace(text, kind + "-" + std::to_string(names.size() + 1));
    if (is_new && text.size() >= kShortestInSentence) all_.emplace(text, found->second);
    return found->second;
  }

  // Words that are names, in a sentence.
  [[nodiscard]] std::string in_sentence(std::string_view text) const {
    std::string out;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_not_of(kInNames), text.size());
      out += replaced(text.substr(0, end));
      text.remove_prefix(end);
      const std::size_t next = std::min(text.find_first_of(kInNames), text.size());
      out += text.substr(0, next);
      text.remove_prefix(next);
    }
    return out;
  }

 private:
  static constexpr std::string_view kInNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  static constexpr std::size_t kShortestInSentence = 3;

  static bool is_kept(const std::string& text) {
    constexpr std::array<std::string_view, 9> kKept = {"default",          "kube-system",       "kube-public",
                                                       "kube-node-lease",  "default-scheduler", "neuron-agent",
                                                       "neuron-agent-dra", "neuron-agent-efa",  "neuron-node"};
    return std::ranges::find(kKept, text) != kKept.end();
  }
  [[nodiscard]] std::string replaced(std::string_view word) const {
    const std::size_t last = word.find_last_not_of('.');  // the end of a sentence
    const std::size_t length = last == std::string_view::npos ? 0 : last + 1;
    const auto found = all_.find(word.substr(0, length));
    return found == all_.end() ? std::string(word) : found->second + std::string(word.substr(length));
  }

  std::map<std::string, std::map<std::string, std::string>> kinds_;
  std::map<std::string, std::string, std::less<>> all_;
};

// What is at a path of an object, lists looked through.
using Rules = std::map<std::string, std::string>;  // path -> a kind of name, or one of these:
constexpr const char* kSentence = "(sentence)";
constexpr const char* kLabels = "(labels)";     // an object of labels
constexpr const char* kRule = "(label rule)";   // an object with key, value, values
constexpr const char* kPodPath = "(pod path)";  // "namespace/name"
constexpr const char* kImage = "(image)";
constexpr const char* kSerial = "(serial)";    // 16 hexadecimal digits
constexpr const char* kNothing = "(nothing)";  // becomes null

const Rules& rules_of(Kind kind) {
  static const Rules kObject = {
      {"metadata.namespace", "namespace"}, {"metadata.uid", "uid"}, {"metadata.ownerReferences.name", "owner"}};
  static const auto with = [](Rules rules) {
    rules.insert(kObject.begin(), kObject.end());
    return rules;
  };
  static const std::map<Kind, Rules> kRules = {
      {Kind::nodes, with({{"metadata.name", "node"},
                          {"metadata.labels", kLabels},
                          {"spec.taints", kRule},
                          {"status.conditions.message", kSentence}})},
      {Kind::pods,
       with({{"metadata.name", "pod"},
             {"spec.nodeName", "node"},
             {"spec.schedulerName", "scheduler"},
             {"spec.schedulingGates.name", "gate"},
             {"spec.nodeSelector", kLabels},
             {"spec.tolerations", kRule},
             {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms."
              "matchExpressions",
              kRule},
             {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchFields."
              "values",
              "node"},
             {"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", kNothing},
             {"spec.containers.name", "container"},
             {"spec.containers.image", kImage},
             {"spec.initContainers.name", "container"},
             {"spec.resourceClaims.resourceClaimName", "claim"},
             {"spec.resourceClaims.resourceClaimTemplateName", "template"},
             {"status.resourceClaimStatuses.resourceClaimName", "claim"},
             {"status.extendedResourceClaimStatus.resourceClaimName", "claim"},
             {"status.message", kSentence},
             {"status.conditions.message", kSentence}})},
      {Kind::slices,
       {{"metadata.name", "slice"},
        {"spec.nodeName", "node"},
        {"spec.pool.name", "node"},
        {"spec.devices.attributes.serial.string", kSerial},
        {"spec.devices.attributes.networkNodeLayer1.string", "layer"},
        {"spec.devices.attributes.networkNodeLayer2.string", "layer"},
        {"spec.devices.attributes.networkNodeLayer3.string", "layer"}}},
      {Kind::claims, with({{"metadata.name", "claim"},
                           {"status.allocation.devices.results.pool", "node"},
                           {"status.reservedFor.name", "pod"},
                           {"status.reservedFor.uid", "uid"}})},
      {Kind::claim_templates, with({{"metadata.name", "template"}})},
      {Kind::device_classes, {}},
      {Kind::events,
       {{"involvedObject.namespace", "namespace"}, {"involvedObject.name", "(involved)"}, {"message", kSentence}}},
  };
  return kRules.at(kind);
}

const Rules& rules_of_agents() {
  static const Rules kRules = {{"host.instance_id", "instance"},
                               {"devices.serial", kSerial},
                               {"devices.pods", kPodPath},
                               {"efa_interfaces.pods", kPodPath},
                               {"devices.processes.command", kNothing},
                               {"pods.namespace", "namespace"},
                               {"pods.pod", "pod"},
                               {"pods.container", "container"},
                               {"pods.claim", "claim"},
                               {"pods.claim_namespace", "namespace"}};
  return kRules;
}

// Labels of Kubernetes and AWS, whose names say nothing of the owner, and of them those whose values do not either.
bool is_public_key(std::string_view key) {
  const std::string_view domain = key.substr(0, key.find('/'));
  const auto ends = [&](std::string_view end) { return domain.ends_with(end); };
  return key.find('/') != std::string_view::npos && (ends("kubernetes.io") || ends("k8s.io") || ends("amazonaws.com") ||
                                                     ends("aws.com") || ends("k8s.aws") || domain == "neuron-agent");
}
bool is_public_value(std::string_view key, std::string_view value) {
  if (value == "true" || value == "false" || is_digits(value)) return true;
  const std::string_view name = key.substr(key.find('/') + 1);
  constexpr std::array<std::string_view, 4> kNames = {"instance-type", "arch", "os", "capacityType"};
  return is_public_key(key) && (key.starts_with("neuron-agent/") || std::ranges::find(kNames, name) != kNames.end());
}

class Anonymiser {
 public:
  void run(Documents& documents) {
    // Nodes first, so that the names of pools are known as theirs; sentences last, once all names are known.
    for (const bool is_last : {false, true}) {
      sentences_ = is_last;
      for (const Kind kind : kAllKinds) {
        for (std::string& page : documents.list(kind)) rewrite(page, rules_of(kind), true);
      }
      for (auto& [node, answer] : documents.agents) rewrite(answer.body, rules_of_agents(), false);
    }
    std::map<std::string, AgentAnswer> agents;
    for (auto& [node, answer] : documents.agents) {
      answer.pod = pod_path(answer.pod);
      answer.missing = names_.in_sentence(answer.missing);
      agents.emplace(names_.of("node", node), std::move(answer));
    }
    documents.agents = std::move(agents);
    documents.default_namespace = names_.of("namespace", documents.default_namespace);
    for (std::string& sentence : documents.unknown) sentence = names_.in_sentence(sentence);
  }

 private:
  void rewrite(std::string& text, const Rules& rules, bool is_list) {
    if (text.empty()) return;
    auto document = kube::parse_object(text, "");
    if (!document) {
      text.clear();  // what cannot be read cannot be anonymised
      return;
    }
    if (is_list) {
      if (!document->contains("items")) return;
      for (json& item : (*document)["items"]) walk(item, "", rules);
    } else {
      walk(*document, "", rules);
    }
    text = document->dump(-1, ' ', false, json::error_handler_t::replace);
  }

  void walk(json& value, const std::string& path, const Rules& rules) {
    const auto rule = rules.find(path);
    if (value.is_array()) {
      for (json& item : value) walk(item, path, rules);
    } else if (rule != rules.end()) {
      apply(value, rule->second);
    } else if (value.is_object()) {
      if (path == "involvedObject") involved_ = kube::text_of(value, "kind");
      for (auto& [key, member] : value.items()) walk(member, path.empty() ? key : path + "." + key, rules);
    }
  }

  void apply(json& value, const std::string& rule) {
    if (sentences_ != (rule == kSentence)) return;
    if (rule == kNothing) {
      value = nullptr;
    } else if (rule == kLabels) {
      rewrite_labels(value);
    } else if (rule == kRule) {
      rewrite_rule(value);
    } else if (value.is_string()) {
      value = text_for(value.get<std::string>(), rule);
    }
  }

  std::string text_for(const std::string& text, const std::string& rule) {
    if (rule == kSentence) return names_.in_sentence(text);
    if (rule == kPodPath) return pod_path(text);
    if (rule == kImage) return "neuron-agent" + text.substr(std::min(text.rfind(':'), text.size()));
    if (rule == kSerial) return serial_for(text);
    if (rule == "(involved)")
      return names_.of(involved_ == "Node" ? "node" : involved_ == "Pod" ? "pod" : "object", text);
    return names_.of(rule, text);
  }

  // In the format of serial numbers, which readers check.
  std::string serial_for(const std::string& text) {
    if (text.empty()) return text;
    const std::string name = names_.of("serial", text);
    const std::string number = name.substr(name.rfind('-') + 1);
    return std::string(16 - std::min<std::size_t>(number.size(), 15), '0') + number;
  }

  std::string pod_path(const std::string& text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos) return names_.of("pod", text);
    return names_.of("namespace", text.substr(0, slash)) + "/" + names_.of("pod", text.substr(slash + 1));
  }

  std::string key_for(const std::string& key) { return is_public_key(key) ? key : names_.of("label", key); }
  std::string value_for(const std::string& key, const std::string& value) {
    if (is_public_value(key, value)) return value;
    return names_.of(key == "kubernetes.io/hostname" ? "node" : "value", value);
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
    if (rule.contains("key")) rule["key"] = key_for(key);
    if (rule.contains("value") && rule["value"].is_string()) rule["value"] = value_for(key, rule["value"]);
    if (!rule.contains("values") || !rule["values"].is_array()) return;
    for (json& value : rule["values"]) {
      if (value.is_string()) value = value_for(key, value.get<std::string>());
    }
  }

  Names names_;
  std::string involved_;
  bool sentences_ = false;
};

}  // namespace

void anonymise(Documents& documents) {
  Anonymiser().run(documents);
}

}  // namespace neuron::fleet
