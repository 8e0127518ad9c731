#include "plugin/dra/slices/slice_text.h"

#include <nlohmann/json.hpp>

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr const char* kApiVersion = "resource.k8s.io/v1";

json attribute_json(const AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return {{"int", *number}};
  if (const auto* truth = std::get_if<bool>(&value)) return {{"bool", *truth}};
  if (const auto* version = std::get_if<Version>(&value)) return {{"version", version->text}};
  return {{"string", std::get<std::string>(value)}};
}

json values_json(const std::map<std::string, std::int64_t>& values) {
  json all = json::object();
  for (const auto& [name, value] : values) all[name] = {{"value", quantity_text(value)}};
  return all;
}

json taint_json(const SliceTaint& taint) {
  json object = {{"key", taint.taint.key}, {"effect", taint.taint.effect}};
  if (!taint.taint.value.empty()) object["value"] = taint.taint.value;
  if (!taint.time_added.empty()) object["timeAdded"] = taint.time_added;
  return object;
}

json device_json(const SliceDevice& device) {
  json object = {{"name", device.name}};
  for (const auto& [name, value] : device.attributes) object["attributes"][name] = attribute_json(value);
  if (!device.capacity.empty()) object["capacity"] = values_json(device.capacity);
  for (const auto& [set, counters] : device.consumes) {
    object["consumesCounters"].push_back({{"counterSet", set}, {"counters", values_json(counters)}});
  }
  for (const SliceTaint& taint : device.taints) object["taints"].push_back(taint_json(taint));
  return object;
}

json spec_json(const Slice& slice) {
  json spec = {
      {"driver", slice.driver},
      {"nodeName", slice.node},
      {"pool", {{"name", slice.pool}, {"generation", slice.generation}, {"resourceSliceCount", slice.slice_count}}}};
  for (const auto& [name, counters] : slice.content.counter_sets) {
    spec["sharedCounters"].push_back({{"name", name}, {"counters", values_json(counters)}});
  }
  for (const SliceDevice& device : slice.content.devices) spec["devices"].push_back(device_json(device));
  return spec;
}

json object_json(const Slice& slice) {
  json metadata = {{"name", slice.name}};
  if (!slice.uid.empty()) metadata["uid"] = slice.uid;
  if (!slice.resource_version.empty()) metadata["resourceVersion"] = slice.resource_version;
  if (!slice.owner.uid.empty()) {
    metadata["ownerReferences"].push_back({{"apiVersion", "v1"},
                                           {"kind", "Node"},
                                           {"name", slice.owner.name},
                                           {"uid", slice.owner.uid},
                                           {"controller", true}});
  }
  return {{"apiVersion", kApiVersion},
          {"kind", "ResourceSlice"},
          {"metadata", std::move(metadata)},
          {"spec", spec_json(slice)}};
}

std::string text_of(const json& object, int indent) {
  return object.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string slice_json(const Slice& slice) {
  return text_of(object_json(slice), -1);
}

std::string slice_list_json(const std::vector<Slice>& slices) {
  json items = json::array();
  for (const Slice& slice : slices) items.push_back(object_json(slice));
  return text_of({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}}, 2) + "\n";
}

}  // namespace neuron::plugin::dra
