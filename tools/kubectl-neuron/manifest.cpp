#include "tools/kubectl-neuron/manifest.h"

#include <algorithm>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/parse.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

constexpr int kMostReplicas = 100'000;
constexpr std::size_t kMostGroups = 256;

// The texts of objects that follow each other: "{…}\n{…}".
std::vector<std::string_view> objects_in(std::string_view text) {
  std::vector<std::string_view> all;
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false, escaped = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '"' && !escaped) quoted = false;
      escaped = c == '\\' && !escaped;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' && depth++ == 0) begin = at;
    if (c == '}' && depth > 0 && --depth == 0) all.push_back(text.substr(begin, at + 1 - begin));
  }
  if (depth > 0) all.push_back(text.substr(begin));  // cut short: parsing says so
  return all;
}

int multiplied(int count, const json& object) {
  for (const char* key : {"replicas", "parallelism"}) {
    const json& value = kube::member(object, key);
    if (!value.is_number_integer()) continue;
    const auto own = std::clamp<std::int64_t>(value.get<std::int64_t>(), 0, kMostReplicas);
    count = static_cast<int>(std::min<std::int64_t>(count * own, kMostReplicas));
  }
  return count;
}

class Reader {
 public:
  Reader(std::string pod_namespace, const std::vector<DeviceClass>& classes) : namespace_(std::move(pod_namespace)) {
    for (const DeviceClass& one : classes) {
      if (!one.extended_resource.empty()) resources_.insert(one.extended_resource);
    }
  }

  void read(const json& object) {
    for (const json& item : kube::list_of(object, "items")) read(item);
    const std::string kind = kube::text_of(object, "kind");
    const json& metadata = kube::member(object, "metadata");
    std::string own = kube::text_of(metadata, "namespace");
    if (own.empty()) own = namespace_;
    const std::string name = kube::text_of(metadata, "name");
    const json& spec = kube::member(object, "spec");
    if (kind == "ResourceClaimTemplate") {
      manifest_.added.claim_templates[own + "/" + name] = requests_of(kube::member(spec, "spec"));
      manifest_.added.template_constraints[own + "/" + name] = constraints_of(kube::member(spec, "spec"));
    } else if (kind == "ResourceClaim") {
      json copy = object;
      copy["metadata"]["namespace"] = own;
      manifest_.added.claims.push_back(claim_of(copy));
    } else {
      find_pods(object, own, name.empty() ? kube::text_of(metadata, "generateName") + "pod" : name, 1, "");
    }
  }

  Manifest take() { return std::move(manifest_); }

 private:
  static bool is_pod_spec(const json& object) { return !kube::list_of(object, "containers").empty(); }

  // Below an object that has replicas or templates; `part` is the name of one of several templates.
  void find_pods(const json& object, const std::string& own, const std::string& name, int count,
                 const std::string& part) {
    if (!object.is_object() || manifest_.groups.size() >= kMostGroups) return;
    if (is_pod_spec(object)) {
      add(object, own, part.empty() ? name : name + "-" + part, count);
      return;
    }
    const int all = multiplied(count, object);
    for (const auto& [key, value] : object.items()) {
      if (key == "metadata" || key == "status") continue;
      if (value.is_object()) {
        const bool is_plain =
            key == "spec" || key == "template" || key == "jobTemplate" || key.ends_with("ReplicaSpecs");
        find_pods(value, own, name, all, is_plain ? part : lower_ascii(key));
      }
      if (!value.is_array()) continue;
      for (const json& one : value) {
        const std::string named = kube::text_of(one, "name");
        find_pods(one, own, name, all, named.empty() ? part : named);
      }
    }
  }

  void add(const json& spec, const std::string& own, const std::string& name, int count) {
    const json object = {{"metadata", {{"name", name}, {"namespace", own}}}, {"spec", spec}};
    Pod pod = pod_of(object, resources_);
    pod.phase = "Pending";
    pod.node.clear();
    manifest_.groups.push_back({std::move(pod), count});
  }

  std::string namespace_;
  std::set<std::string> resources_;
  Manifest manifest_;
};

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, const std::string& pod_namespace,
                                const std::vector<DeviceClass>& classes) {
  Reader reader(pod_namespace, classes);
  for (const std::string_view one : objects_in(text)) {
    TRY_ASSIGN(const json object, kube::parse_object(one, "the manifest"));
    reader.read(object);
  }
  Manifest manifest = reader.take();
  if (manifest.groups.empty()) return fail(ErrorCode::invalid_argument, "the manifest has no pod and no pod template");
  std::ranges::sort(manifest.added.claims, {},
                    [](const Claim& claim) { return std::tie(claim.claim_namespace, claim.name); });
  return manifest;
}

}  // namespace neuron::fleet
