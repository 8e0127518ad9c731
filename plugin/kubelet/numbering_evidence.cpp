#include "plugin/kubelet/numbering_evidence.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/base/base64.h"
#include "agent/base/parse.h"
#include "agent/model/resource.h"
#include "deviceplugin/v1beta1/api.pb.h"
#include "plugin/kubelet/checkpoint.h"

namespace neuron::plugin {
namespace {

using nlohmann::json;
using Given = holdings::NumberingEvidence::Given;

constexpr int kMaxId = 65535;

const json* member(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

void add_ids(const json& list, std::set<int>& ids) {
  if (!list.is_array()) return;
  for (const json& id : list) {
    if (!id.is_string()) continue;
    if (const auto number = parse_int(id.get_ref<const std::string&>(), 0, kMaxId)) ids.insert(*number);
  }
}

std::vector<int> devices_in(const std::string& answer) {
  constexpr std::string_view kNode = "/dev/neuron";
  constexpr int kMaxBytes = 1 << 20;
  v1beta1::ContainerAllocateResponse response;
  const std::string bytes = decode_base64(answer);
  if (bytes.size() > kMaxBytes || !response.ParseFromString(bytes)) return {};
  std::set<int> devices;
  for (const v1beta1::DeviceSpec& node : response.devices()) {
    std::string_view path = node.container_path();
    if (!path.starts_with(kNode)) continue;
    path.remove_prefix(kNode.size());
    if (const auto index = parse_int(path, 0, kMaxId)) devices.insert(*index);
  }
  return {devices.begin(), devices.end()};
}

void add_entry(const json& entry, holdings::NumberingEvidence& evidence) {
  const json* by_node = member(entry, "DeviceIDs");
  if (by_node == nullptr || !by_node->is_object()) return;
  std::set<int> ids;
  for (const json& list : *by_node) add_ids(list, ids);
  if (ids.empty()) return;
  Given given{{ids.begin(), ids.end()}, {}};
  if (const json* answer = member(entry, "AllocResp"); answer != nullptr && answer->is_string()) {
    given.devices = devices_in(answer->get_ref<const std::string&>());
  }
  evidence.given.push_back(std::move(given));
}

}  // namespace

holdings::NumberingEvidence parse_numbering_evidence(std::string_view checkpoint) {
  holdings::NumberingEvidence evidence;
  const std::string name(model::resource_name(model::Resource::neuroncore));
  // Entries are looked at and dropped one by one: thousands of recorded answers need not be in memory together.
  const auto take = [&](int /*depth*/, json::parse_event_t event, json& parsed) {
    if (event != json::parse_event_t::object_end || !parsed.is_object()) return true;
    const json* resource = member(parsed, "ResourceName");
    if (resource == nullptr) return true;
    if (resource->is_string() && resource->get_ref<const std::string&>() == name) add_entry(parsed, evidence);
    return false;
  };
  const json document = json::parse(checkpoint, take, false);
  if (!document.is_object()) return {};
  const json* data = member(document, "Data");
  const json* registered = data != nullptr && data->is_object() ? member(*data, "RegisteredDevices") : nullptr;
  const json* listed = registered != nullptr && registered->is_object() ? member(*registered, name) : nullptr;
  std::set<int> ids;
  if (listed != nullptr) add_ids(*listed, ids);
  if (!ids.empty()) evidence.highest_listed = *ids.rbegin();
  return evidence;
}

holdings::NumberingEvidence read_numbering_evidence(const std::string& path) {
  const auto file = read_checkpoint_text(path);
  return file ? parse_numbering_evidence(file->text) : holdings::NumberingEvidence{};
}

}  // namespace neuron::plugin
