#include "plugin/device/listed_units.h"

#include <nlohmann/json.hpp>
#include <set>

#include "agent/base/parse.h"
#include "agent/model/resource.h"
#include "plugin/kubelet/checkpoint.h"

namespace neuron::plugin {
namespace {

using nlohmann::json;

const json* object_in(const json& parent, std::string_view key) {
  const auto found = parent.find(key);
  return found != parent.end() && found->is_object() ? &*found : nullptr;
}

void add_ids(const json& registered, model::Resource resource, std::set<int>& ids) {
  constexpr int kMaxId = 65535;
  const auto list = registered.find(model::resource_name(resource));
  if (list == registered.end() || !list->is_array()) return;
  for (const json& id : *list) {
    if (!id.is_string()) continue;
    if (const auto number = parse_int(id.get_ref<const std::string&>(), 0, kMaxId)) ids.insert(*number);
  }
}

}  // namespace

ListedUnits parse_listed_units(std::string_view checkpoint) {
  // The recorded answers of all plugins are most of the text, and are dropped as they are read.
  const auto take = [](int /*depth*/, json::parse_event_t event, json& parsed) {
    return event != json::parse_event_t::key || parsed != "PodDeviceEntries";
  };
  const json document = json::parse(checkpoint, take, false);
  if (!document.is_object()) return {};
  const json* data = object_in(document, "Data");
  const json* registered = data != nullptr ? object_in(*data, "RegisteredDevices") : nullptr;
  if (registered == nullptr) return {};
  std::set<int> devices;
  std::set<int> cores;
  add_ids(*registered, model::Resource::neuron, devices);
  add_ids(*registered, model::Resource::neurondevice, devices);
  add_ids(*registered, model::Resource::neuroncore, cores);
  return {{devices.begin(), devices.end()}, {cores.begin(), cores.end()}};
}

ListedUnits read_listed_units(const std::string& path) {
  const auto file = read_checkpoint_text(path);
  return file ? parse_listed_units(file->text) : ListedUnits{};
}

}  // namespace neuron::plugin
