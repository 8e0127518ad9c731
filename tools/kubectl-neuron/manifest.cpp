#include "tools/kubectl-neuron/plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "agent/model/resource.h"
#include "tools/kubectl-neuron/parse.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

constexpr int kMostReplicas = 100'000;  // more are an error: larger numbers are read as one above
constexpr std::size_t kMostGroups = 256;

// The texts of objects that follow each other: "{…}\n{…}". Errors: invalid_argument (other text beside them).
Result<std::vector<std::string_view>> objects_in(std::string_view text) {
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
    if (depth == 0 && c != '{' && !trim(text.substr(at, 1)).empty()) {
      return fail(ErrorCode::invalid_argument, "text that is no object: " + printable(trim(text.substr(at)), 64));
    }
    if (c == '"') quoted = true;
    if (c == '{' && depth++ == 0) begin = at;
    if (c == '}' && --depth == 0) all.push_back(text.substr(begin, at + 1 - begin));
  }
  if (depth > 0) all.push_back(text.substr(begin));  // cut short: parsing says so
  return all;
}

std::string shown(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 64);
}

// Objects and lists are other fields of this name.
Result<std::optional<int>> number_in(const json& object, const char* key) {
  const json& value = kube::member(object, key);
  if (value.is_null() || value.is_structured()) return std::optional<int>();
  if (!value.is_number_unsigned()) {
    return fail(ErrorCode::invalid_argument, std::string(key) + ": " + shown(value) + " is no number of pods");
  }
  return std::optional(static_cast<int>(std::min<std::uint64_t>(value.get<std::uint64_t>(), kMostReplicas + 1)));
}

int times(int count, int more) {
  return static_cast<int>(std::min<std::int64_t>(std::int64_t{count} * std::max(more, 0), kMostReplicas + 1));
}

Result<int> multiplied(int count, const json& object) {
  for (const char* key : {"replicas", "numOfHosts"}) {
    TRY_ASSIGN(const auto more, number_in(object, key));
    count = times(count, more.value_or(1));
  }
  TRY_ASSIGN(const auto parallelism, number_in(object, "parallelism"));
  TRY_ASSIGN(const auto completions, number_in(object, "completions"));
  if (parallelism || completions)
    count = times(count, std::min(parallelism.value_or(1), completions.value_or(kMostReplicas + 1)));
  return count;
}

// Of `count` replicas: a LeaderWorkerSet's have `size` pods each, one of them the leader, which may have a template of
// its own.
Result<int> of_member(int count, const json& object, const std::string& key) {
  if (key != "workerTemplate") return count;
  TRY_ASSIGN(const auto size, number_in(object, "size"));
  return times(count, kube::member(object, "leaderTemplate").is_object() ? size.value_or(1) - 1 : size.value_or(1));
}

// "worker" of "Worker" and "workerTemplate", "head" of "headGroupSpec".
std::string part_of(const std::string& key) {
  std::string part = lower_ascii(key);
  for (const std::string_view end : {"template", "groupspec"}) {
    if (part.ends_with(end)) part.resize(part.size() - end.size());
  }
  return part;
}

// Each set of pods has a part of the cluster to itself.
bool is_exclusive(const json& object) {
  const json& annotations = kube::member(kube::member(object, "metadata"), "annotations");
  if (!annotations.is_object()) return false;
  constexpr const char* kNames[] = {"alpha.jobset.sigs.k8s.io/exclusive-topology",
                                    "leaderworkerset.sigs.k8s.io/exclusive-topology",
                                    "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"};
  return std::ranges::any_of(kNames, [&](const char* name) { return annotations.contains(name); });
}

// Misspelt or unknown names in the domains of this project's resources. Two more are of Amazon's VPC controller.
bool is_misnamed(std::string_view name) {
  if (name == "vpc.amazonaws.com/pod-eni" || name == "vpc.amazonaws.com/PrivateIPv4Address") return false;
  return std::ranges::any_of(model::kAllResources, [&](model::Resource one) {
    const std::string_view known = model::resource_name(one);
    return name.starts_with(known.substr(0, known.find('/') + 1));
  });
}

bool is_amount(const json& value) {
  if (!value.is_string()) return value.is_number_unsigned();
  return kube::parse_quantity(value.get_ref<const std::string&>()).value_or(-1) >= 0;
}

// Amounts that the rest of the program would leave out. `where` begins the message.
Result<void> check_amounts(const json& amounts, const std::set<std::string>& more, const std::string& where) {
  if (!amounts.is_object()) return {};
  for (const auto& [name, value] : amounts.items()) {
    const bool known = model::parse_resource(name).has_value() || more.contains(name);
    const std::string what = where + ": " + printable(name) + ": " + shown(value);
    if (!known && is_misnamed(name)) {
      return fail(ErrorCode::invalid_argument, what + ": the agent has no resource of this name");
    }
    if (!known && !thousandths_of(value)) return fail(ErrorCode::invalid_argument, what + " is no quantity");
    if (known && !is_amount(value))
      return fail(ErrorCode::invalid_argument, what + " is no whole number that can be asked for");
  }
  return {};
}

Result<void> check_containers(const json& spec, const std::set<std::string>& more, const std::string& pod) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& one : kube::list_of(spec, list)) {
      for (const char* field : {"limits", "requests"}) {
        const json& amounts = kube::member(kube::member(one, "resources"), field);
        const std::string where = pod + ": container " + printable(kube::text_of(one, "name")) + ": " + field;
        TRY(check_amounts(amounts, more, where));
      }
    }
  }
  return {};
}

Result<void> check_count(const json& request, const std::string& where) {
  const json& count = kube::member(request, "count");
  if (count.is_null() || count.is_number_unsigned()) return {};
  return fail(ErrorCode::invalid_argument, where + ": count: " + shown(count) + " is no number of devices");
}

// `spec` of a claim, or of a template's claims.
Result<void> check_counts(const json& spec, const std::string& claim) {
  for (const json& one : kube::list_of(kube::member(spec, "devices"), "requests")) {
    const std::string where = claim + ": request " + printable(kube::text_of(one, "name"));
    TRY(check_count(one, where));
    TRY(check_count(kube::member(one, "exactly"), where));
    for (const json& each : kube::list_of(one, "firstAvailable")) TRY(check_count(each, where));
  }
  return {};
}

// As the DaemonSet controller adds them.
void add_tolerations(Pod& pod) {
  for (const char* key :
       {"not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"}) {
    pod.tolerations.push_back({std::string("node.kubernetes.io/") + key, "Exists", "", ""});
  }
}

class Reader {
 public:
  Reader(std::string pod_namespace, const std::vector<DeviceClass>& classes) : namespace_(std::move(pod_namespace)) {
    for (const DeviceClass& one : classes) {
      if (!one.extended_resource.empty()) resources_.insert(one.extended_resource);
    }
  }

  Result<void> read(const json& object) {
    if (const json& items = kube::member(object, "items"); items.is_array()) {
      for (const json& item : items) TRY(read(item));
      return {};
    }
    const std::string kind = kube::text_of(object, "kind");
    const json& metadata = kube::member(object, "metadata");
    std::string own = kube::text_of(metadata, "namespace");
    if (own.empty()) own = namespace_;
    const std::string name = kube::text_of(metadata, "name");
    const json& spec = kube::member(object, "spec");
    if (kind == "ResourceClaimTemplate") {
      TRY(check_counts(kube::member(spec, "spec"), printable(own + "/" + name, 400)));
      manifest_.added.claim_templates[own + "/" + name] = requests_of(kube::member(spec, "spec"));
      manifest_.added.template_constraints[own + "/" + name] = constraints_of(kube::member(spec, "spec"));
    } else if (kind == "ResourceClaim") {
      TRY(check_counts(spec, printable(own + "/" + name, 400)));
      json copy = object;
      copy["metadata"]["namespace"] = own;
      manifest_.added.claims.push_back(claim_of(copy));
    } else {
      per_node_ = kind == "DaemonSet";
      has_volumes_ = !kube::list_of(spec, "volumeClaimTemplates").empty();
      TRY(find_pods(object, {own, name.empty() ? kube::text_of(metadata, "generateName") + "pod" : name}));
    }
    return {};
  }

  Manifest take() { return std::move(manifest_); }

 private:
  static bool is_pod_spec(const json& object) { return !kube::list_of(object, "containers").empty(); }

  // What the objects around a template say of its pods. Passive data.
  struct Owner {
    std::string own_namespace;
    std::string name;
    std::string part{};  // the name of one of several templates
    int count = 1;
    bool is_exclusive = false;

    [[nodiscard]] std::string full_name() const { return printable(own_namespace + "/" + name, 400); }
  };

  // Below an object that has replicas or templates.
  Result<void> find_pods(const json& object, Owner owner) {
    if (!object.is_object()) return {};
    if (is_pod_spec(object)) return add(object, owner);
    const std::size_t before = manifest_.groups.size();
    const auto all = multiplied(owner.count, object);
    owner.count = all.value_or(0);
    owner.is_exclusive |= is_exclusive(object);
    for (const auto& [key, value] : object.items()) {
      if (key == "metadata" || key == "status") continue;
      Owner inner = owner;
      if (value.is_object()) {
        const bool is_plain =
            key == "spec" || key == "template" || key == "jobTemplate" || key.ends_with("ReplicaSpecs");
        if (!is_plain) inner.part = part_of(key);
        const auto count = of_member(owner.count, object, key);
        if (!count) return fail(Error(count.error()).with_context(owner.full_name()));
        inner.count = *count;
        TRY(find_pods(value, inner));
      }
      if (!value.is_array()) continue;
      for (const json& one : value) {
        const std::string named = kube::text_of(one, "name"), group = kube::text_of(one, "groupName");
        if (!named.empty() || !group.empty()) inner.part = named.empty() ? group : named;
        TRY(find_pods(one, inner));
        inner.part = owner.part;
      }
    }
    const bool has_pods = manifest_.groups.size() > before;
    if (!all && has_pods) return fail(Error(all.error()).with_context(owner.full_name()));
    return {};
  }

  Result<void> add(const json& spec, const Owner& owner) {
    const auto& [own, base, part, count, is_exclusive] = owner;
    const std::string name = part.empty() ? base : base + "-" + part;
    TRY(check_containers(spec, resources_, printable(own + "/" + name, 400)));
    if (count > kMostReplicas) {
      return fail(ErrorCode::invalid_argument, printable(own + "/" + name, 400) + " has more than " +
                                                   counted(kMostReplicas, "replica") + ", the most that are counted");
    }
    if (manifest_.groups.size() >= kMostGroups) {
      return fail(ErrorCode::invalid_argument,
                  "the manifest has more than " + counted(kMostGroups, "pod") + " and pod templates");
    }
    const json object = {{"metadata", {{"name", name}, {"namespace", own}}}, {"spec", spec}};
    Pod pod = pod_of(object, resources_);
    pod.phase = "Pending";
    pod.node.clear();
    if (per_node_) add_tolerations(pod);
    PodGroup& group =
        manifest_.groups.emplace_back(PodGroup{std::move(pod), count, per_node_, rules_not_counted(spec)});
    if (has_volumes_) group.not_counted.insert("persistent volumes");
    if (is_exclusive) group.not_counted.insert("exclusive topology");
    return {};
  }

  std::string namespace_;
  std::set<std::string> resources_;
  bool per_node_ = false;     // of the object that is read
  bool has_volumes_ = false;  // likewise, beside its pods'
  Manifest manifest_;
};

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, const std::string& pod_namespace,
                                const std::vector<DeviceClass>& classes) {
  Reader reader(pod_namespace, classes);
  TRY_ASSIGN(const auto objects, objects_in(text));
  for (const std::string_view one : objects) {
    TRY_ASSIGN(const json object, kube::parse_object(one, "the manifest"));
    TRY(reader.read(object));
  }
  Manifest manifest = reader.take();
  if (manifest.groups.empty()) return fail(ErrorCode::invalid_argument, "the manifest has no pod and no pod template");
  std::ranges::sort(manifest.added.claims, {},
                    [](const Claim& claim) { return std::tie(claim.claim_namespace, claim.name); });
  return manifest;
}

}  // namespace neuron::fleet
