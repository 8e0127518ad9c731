#include "plugin/placement/placed_pod.h"

#include <algorithm>
#include <array>

#include "agent/base/parse.h"
#include "agent/base/sorted.h"

namespace neuron::plugin {
namespace {

using model::Resource;
using Json = nlohmann::json;

// The first of those that a container asks for is the one that its ids are of.
constexpr std::array kPlaced = {Resource::neuron, Resource::neurondevice, Resource::neuroncore};
constexpr std::size_t kMostContainers = 256;
constexpr int kMostUnits = 65536;  // of one request

// Kubernetes stores a request for whole units in digits.
int units_of(const Json& value) {
  if (value.is_number_integer()) return parse_int(value.dump(), 1, kMostUnits).value_or(0);
  return value.is_string() ? parse_int(value.get_ref<const std::string&>(), 1, kMostUnits).value_or(0) : 0;
}

std::optional<PlacedContainer> container_of(const Json& spec) {
  const Json* limits = kube::member_of(spec, {"resources", "limits"});
  if (limits == nullptr) return std::nullopt;
  PlacedContainer container{printable(kube::text_of(spec, "name")), {}};
  for (const Resource resource : kPlaced) {
    const Json& value = kube::member(*limits, model::resource_name(resource));
    if (const int units = units_of(value); units > 0) container.requests[resource] = units;
  }
  return container.requests.empty() ? std::nullopt : std::optional(std::move(container));
}

// The resource that a container's ids are of.
std::optional<Resource> placed_resource(const PlacedContainer& container) {
  for (const Resource resource : kPlaced) {
    if (container.requests.contains(resource)) return resource;
  }
  return std::nullopt;
}

std::string wrong_length(std::size_t ids, std::size_t units) {
  return std::string(kIdsAnnotation) + " has " + counted(ids, "id") + ", the pod asks for " + counted(units, "unit");
}

// "" or the problem; then no container has ids.
std::string distribute(const std::vector<int>& ids, std::vector<PlacedContainer>& containers) {
  std::size_t units = 0;
  for (const PlacedContainer& one : containers) {
    if (const auto of = placed_resource(one)) units += static_cast<std::size_t>(one.requests.at(*of));
  }
  if (units != ids.size()) return wrong_length(ids.size(), units);
  auto next = ids.begin();
  for (PlacedContainer& one : containers) {
    const auto of = placed_resource(one);
    if (!of) continue;
    const auto end = next + one.requests.at(*of);
    std::vector<int> own = sorted_unique(std::vector<int>(next, end));
    if (own.size() != static_cast<std::size_t>(end - next)) {
      for (PlacedContainer& other : containers) other.placed.reset();
      return std::string(kIdsAnnotation) + " has an id twice";
    }
    one.placed = PlacedIds{*of == Resource::neurondevice ? Resource::neuron : *of, std::move(own)};
    next = end;
  }
  return "";
}

// HAMi writes the type for cores alone; what it then means is what the containers ask for.
bool fits_type(std::string_view type, const std::vector<PlacedContainer>& containers) {
  if (type.empty()) return true;
  return std::ranges::any_of(containers, [&](const PlacedContainer& one) {
    const auto of = placed_resource(one);
    return of && model::resource_name(*of) == type;
  });
}

bool is_waiting(const Json& pod) {
  if (!kube::text_of(pod, {"metadata", "deletionTimestamp"}).empty()) return false;
  const std::string phase = kube::text_of(pod, {"status", "phase"});
  if (!phase.empty() && phase != "Pending") return false;
  if (!kube::text_of(pod, {"status", "startTime"}).empty()) return false;  // the kubelet has it
  const Json& status = kube::member(pod, "status");
  return kube::list_of(status, "containerStatuses").empty() && kube::list_of(status, "initContainerStatuses").empty();
}

void read_annotations(const Json& annotations, PlacedPod& pod) {
  if (kube::text_of(annotations, kAllocatedAnnotation) == "true") return;
  const Json& text = kube::member(annotations, kIdsAnnotation);
  if (text.is_null()) return;
  pod.time = parse_u64(kube::text_of(annotations, kTimeAnnotation));
  const auto ids = parse_placed_ids(text.is_string() ? text.get_ref<const std::string&>() : "");
  if (!ids) {
    pod.problem = ids.error().message;
  } else if (!fits_type(kube::text_of(annotations, kTypeAnnotation), pod.containers)) {
    pod.problem = std::string(kTypeAnnotation) + " names no resource that the pod asks for";
  } else {
    pod.problem = distribute(*ids, pod.containers);
  }
}

}  // namespace

bool PlacedPod::is_placed() const {
  return std::ranges::any_of(containers, [](const PlacedContainer& one) { return one.placed.has_value(); });
}

Result<std::vector<int>> parse_placed_ids(std::string_view text) {
  const auto refused = [] {
    return fail(ErrorCode::invalid_argument, std::string(kIdsAnnotation) + " is no list of ids");
  };
  if (text.empty() || text.size() > kMostIdsBytes) return refused();
  std::vector<int> ids;
  for (const std::string_view part : split(text, ',')) {
    const auto id = parse_int(trim(part), 0, kHighestPlacedId);
    if (!id || ids.size() == kMostPlacedIds) return refused();
    ids.push_back(*id);
  }
  return ids;
}

PlacedPod read_placed_pod(const kube::ApiObject& object) {
  PlacedPod pod{.uid = printable(object.uid),
                .pod_namespace = printable(object.object_namespace, 253),
                .name = printable(object.name, 253),
                .created = printable(kube::text_of(object.json, {"metadata", "creationTimestamp"})),
                .waits = is_waiting(object.json),
                .containers = {}};
  const Json& spec = kube::member(object.json, "spec");
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& one : kube::list_of(spec, list)) {
      if (pod.containers.size() == kMostContainers) break;
      if (auto container = container_of(one)) pod.containers.push_back(*std::move(container));
    }
  }
  if (const Json* annotations = kube::member_of(object.json, {"metadata", "annotations"})) {
    read_annotations(*annotations, pod);
  }
  return pod;
}

}  // namespace neuron::plugin
