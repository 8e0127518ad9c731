#include <algorithm>

#include "agent/base/parse.h"
#include "agent/core/hardware.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/parse.h"

namespace neuron::fleet {
namespace {

using kube::is_true;
using kube::list_of;
using kube::member;
using kube::text_of;
using nlohmann::json;

constexpr std::size_t kMostEntries = 4096;  // of a list in one object

// Capacities and counters: {"cores": {"value": "8"}}, or the quantity itself (requests, v1beta1).
Labels quantities_of(const json& object) {
  Labels quantities;
  if (!object.is_object()) return quantities;
  for (const auto& [name, value] : object.items()) {
    const json& quantity = value.is_object() ? member(value, "value") : value;
    if (quantities.size() >= kMostEntries || name.size() > kLongestText) continue;
    if (quantity.is_string()) quantities[name] = quantity.get_ref<const std::string&>().substr(0, 64);
    if (quantity.is_number_integer()) quantities[name] = quantity.dump();
  }
  return quantities;
}

std::vector<DeviceSelector> selectors_of(const json& object) {
  std::vector<DeviceSelector> selectors;
  for (const json& one : list_of(object, "selectors")) {
    const json* expression = kube::member_of(one, {"cel", "expression"});
    const bool is_text = expression != nullptr && expression->is_string() && selectors.size() < kMostEntries;
    if (is_text) selectors.push_back({expression->get_ref<const std::string&>().substr(0, 10 * kLongestText)});
  }
  return selectors;
}

std::int64_t whole_number(const json& value, std::int64_t otherwise) {
  return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}

// 1 where none is written.
std::int64_t count_of(const json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMostUnits) return kMostUnits;
  return std::clamp<std::int64_t>(whole_number(value, 1), 1, kMostUnits);
}

// `exactly` of v1 and v1beta2, the request itself of v1beta1, or an alternative.
void read_exact(ClaimRequest& request, const json& object) {
  request.device_class = text_of(object, "deviceClassName");
  request.selectors = selectors_of(object);
  request.all = text_of(object, "allocationMode") == "All";
  request.count = count_of(member(object, "count"));
  request.admin_access = is_true(object, "adminAccess");
  request.capacity = quantities_of(member(member(object, "capacity"), "requests"));
  for (const json& one : list_of(object, "tolerations")) {
    const std::string op = text_of(one, "operator");
    if (request.tolerations.size() >= kMostEntries) break;
    request.tolerations.push_back(
        {text_of(one, "key", 512), op.empty() ? "Equal" : op, text_of(one, "value"), text_of(one, "effect")});
  }
}

ClaimRequest request_of(const json& object) {
  ClaimRequest request;
  request.name = text_of(object, "name");
  const json& exactly = member(object, "exactly");
  read_exact(request, exactly.is_object() ? exactly : object);
  for (const json& one : list_of(object, "firstAvailable")) {
    ClaimRequest alternative;
    alternative.name = text_of(one, "name");
    read_exact(alternative, one);
    if (request.first_available.size() < kMostEntries) request.first_available.push_back(std::move(alternative));
  }
  return request;
}

AllocatedDevice allocated_of(const json& object) {
  return {text_of(object, "request"),     text_of(object, "driver"),
          text_of(object, "pool"),        text_of(object, "device"),
          is_true(object, "adminAccess"), quantities_of(member(object, "consumedCapacity"))};
}

AttributeValue attribute_of(const json& object) {
  AttributeValue value;
  const json& number = member(object, "int");
  const json& flag = member(object, "bool");
  if (number.is_number_integer()) value.number = number.get<std::int64_t>();
  if (flag.is_boolean()) value.flag = flag.get<bool>();
  for (const char* key : {"string", "version"}) {
    const json& text = member(object, key);
    if (text.is_string()) value.text = text.get_ref<const std::string&>().substr(0, kLongestText);
  }
  return value;
}

// The facts are in `basic` in v1beta1.
SliceDevice device_of(const json& object, const std::string& driver, SliceFacts& known) {
  SliceDevice device;
  device.name = text_of(object, "name");
  const json& basic = member(object, "basic");
  const json& facts = basic.is_object() ? basic : object;
  const json& attributes = member(facts, "attributes");
  if (attributes.is_object()) {
    for (const auto& [name, value] : attributes.items()) {
      const std::string own = driver + "/";
      if (device.attributes.size() >= kMostEntries || name.size() > kLongestText) continue;
      device.attributes.add({name.starts_with(own) ? name.substr(own.size()) : name, attribute_of(value)},
                            known.attributes);
    }
    device.attributes.shrink_to_fit();
  }
  device.capacity = quantities_of(member(facts, "capacity"));
  device.multiple = is_true(facts, "allowMultipleAllocations");
  for (const json& one : list_of(facts, "consumesCounters")) {
    device.consumes.add({text_of(one, "counterSet"), quantities_of(member(one, "counters"))}, known.counters);
  }
  for (const json& one : list_of(facts, "taints")) {
    if (device.taints.size() >= kMostEntries) break;
    device.taints.push_back({text_of(one, "key", 512), text_of(one, "value"), text_of(one, "effect")});
  }
  return device;
}

}  // namespace

std::vector<ClaimRequest> requests_of(const json& spec) {
  std::vector<ClaimRequest> requests;
  for (const json& one : list_of(member(spec, "devices"), "requests")) {
    if (requests.size() < kMostEntries) requests.push_back(request_of(one));
  }
  return requests;
}

std::vector<ClaimConstraint> constraints_of(const json& spec) {
  std::vector<ClaimConstraint> constraints;
  for (const json& one : list_of(member(spec, "devices"), "constraints")) {
    ClaimConstraint constraint;
    constraint.match_attribute = text_of(one, "matchAttribute", 512);
    constraint.distinct_attribute = text_of(one, "distinctAttribute", 512);
    for (const json& name : list_of(one, "requests")) {
      if (name.is_string()) constraint.requests.push_back(name.get_ref<const std::string&>().substr(0, kLongestText));
    }
    if (constraints.size() < kMostEntries) constraints.push_back(std::move(constraint));
  }
  return constraints;
}

Claim claim_of(const json& object) {
  Claim claim;
  const json& metadata = member(object, "metadata");
  const json& status = member(object, "status");
  claim.claim_namespace = text_of(metadata, "namespace");
  claim.name = text_of(metadata, "name");
  claim.uid = text_of(metadata, "uid");
  claim.requests = requests_of(member(object, "spec"));
  claim.constraints = constraints_of(member(object, "spec"));
  const json& allocation = member(status, "allocation");
  claim.allocated = allocation.is_object();
  for (const json& one : list_of(member(allocation, "devices"), "results")) {
    if (claim.devices.size() < kMostEntries) claim.devices.push_back(allocated_of(one));
  }
  for (const json& one : list_of(status, "reservedFor")) {
    if (text_of(one, "resource") == "pods") claim.reserved_for.push_back(text_of(one, "name"));
  }
  return claim;
}

DeviceClass class_of(const json& object) {
  const json& spec = member(object, "spec");
  return {text_of(member(object, "metadata"), "name"), selectors_of(spec), text_of(spec, "extendedResourceName")};
}

Slice slice_of(const json& object, SliceFacts& facts) {
  Slice slice;
  const json& spec = member(object, "spec");
  const json& pool = member(spec, "pool");
  slice.pool.driver = text_of(spec, "driver");
  slice.pool.name = text_of(pool, "name");
  slice.pool.node = text_of(spec, "nodeName");
  slice.generation = whole_number(member(pool, "generation"), 0);
  slice.slices = whole_number(member(pool, "resourceSliceCount"), 0);
  for (const json& one : list_of(spec, "devices")) {
    if (slice.pool.devices.size() < kMostEntries)
      slice.pool.devices.push_back(device_of(one, slice.pool.driver, facts));
  }
  for (const json& one : list_of(spec, "sharedCounters")) {
    slice.pool.counters.add({text_of(one, "name"), quantities_of(member(one, "counters"))}, facts.counters);
  }
  return slice;
}

}  // namespace neuron::fleet
