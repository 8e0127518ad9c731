#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "plugin/dra/slices/slice_text.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxSlices = 512;   // of one driver and node; ours are 5 at most
constexpr std::size_t kMaxEntries = 128;  // of any list or map: more than a server takes

// Reads one object. Whatever is not as we write it makes `ours` false, and is left out.
class Reader {
 public:
  [[nodiscard]] bool is_ours() const { return ours_; }

  // Null counts as absent.
  const json* member(const json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  std::string text(const json& object, const char* name) {
    const json* value = member(object, name);
    if (value == nullptr) return "";
    if (!value->is_string()) return give_up<std::string>();
    return value->get<std::string>();
  }
  std::int64_t number(const json& object, const char* name) {
    const json* value = member(object, name);
    if (value == nullptr) return 0;
    return whole(*value);
  }
  void only(const json& object, std::initializer_list<std::string_view> names) {
    if (!object.is_object()) {
      ours_ = false;
      return;
    }
    for (const auto& [name, value] : object.items()) {
      if (!value.is_null() && std::find(names.begin(), names.end(), name) == names.end()) ours_ = false;
    }
  }
  // The elements of a list; none when it is absent, no list or too long.
  const json& list(const json& object, const char* name) {
    static const json none = json::array();
    const json* value = member(object, name);
    if (value == nullptr) return none;
    if (value->is_array() && value->size() <= kMaxEntries) return *value;
    ours_ = false;
    return none;
  }
  // The same of a map.
  const json& map(const json& object, const char* name) {
    static const json none = json::object();
    const json* value = member(object, name);
    if (value == nullptr) return none;
    if (value->is_object() && value->size() <= kMaxEntries) return *value;
    ours_ = false;
    return none;
  }

  void read_spec(const json& spec, Slice& slice) {
    only(spec, {"driver", "nodeName", "pool", "devices", "sharedCounters"});
    slice.driver = text(spec, "driver");
    slice.node = text(spec, "nodeName");
    static const json none = json::object();
    const json* pool = member(spec, "pool");
    only(pool != nullptr ? *pool : none, {"name", "generation", "resourceSliceCount"});
    slice.pool = text(pool != nullptr ? *pool : none, "name");
    slice.generation = number(pool != nullptr ? *pool : none, "generation");
    slice.slice_count = number(pool != nullptr ? *pool : none, "resourceSliceCount");
    for (const json& set : list(spec, "sharedCounters")) {
      only(set, {"name", "counters"});
      add(slice.content.counter_sets, text(set, "name"), counters(set, "counters"));
    }
    for (const json& device : list(spec, "devices")) slice.content.devices.push_back(read_device(device));
  }

  OwnerNode owner(const json& metadata) {
    OwnerNode owner;
    for (const json& reference : list(metadata, "ownerReferences")) {
      only(reference, {"apiVersion", "kind", "name", "uid", "controller"});
      const json* controls = member(reference, "controller");
      const bool is_node = text(reference, "apiVersion") == "v1" && text(reference, "kind") == "Node";
      if (!is_node || controls == nullptr || *controls != true || !owner.uid.empty()) {
        ours_ = false;
        continue;
      }
      owner = {text(reference, "name"), text(reference, "uid")};
    }
    return owner;
  }

 private:
  template <typename T>
  T give_up() {
    ours_ = false;
    return T{};
  }
  std::int64_t whole(const json& value) {
    if (!value.is_number_integer()) return give_up<std::int64_t>();
    const bool too_great =
        value.is_number_unsigned() &&
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return too_great ? give_up<std::int64_t>() : value.get<std::int64_t>();
  }
  template <typename T>
  void add(std::map<std::string, T>& all, const std::string& name, T value) {
    if (!all.emplace(name, std::move(value)).second) ours_ = false;
  }

  Counters counters(const json& object, const char* name) {
    Counters values;
    for (const auto& [key, value] : map(object, name).items()) {
      only(value, {"value"});
      const json* quantity = member(value, "value");
      std::optional<std::int64_t> read;
      if (quantity != nullptr && quantity->is_string()) read = parse_quantity(quantity->get_ref<const std::string&>());
      if (!read) ours_ = false;
      values[key] = read.value_or(0);
    }
    return values;
  }
  AttributeValue attribute(const json& value) {
    if (!value.is_object() || value.size() != 1) return give_up<std::string>();
    const std::string& type = value.items().begin().key();
    const json& content = value.begin().value();
    if (type == "int") return whole(content);
    if (type == "bool" && content.is_boolean()) return content.get<bool>();
    if (type == "string" && content.is_string()) return content.get<std::string>();
    if (type == "version" && content.is_string()) return Version{content.get<std::string>()};
    return give_up<std::string>();
  }
  SliceDevice read_device(const json& object) {
    only(object, {"name", "attributes", "capacity", "consumesCounters", "taints"});
    SliceDevice device{text(object, "name")};
    for (const auto& [name, value] : map(object, "attributes").items()) device.attributes[name] = attribute(value);
    device.capacity = counters(object, "capacity");
    for (const json& use : list(object, "consumesCounters")) {
      only(use, {"counterSet", "counters"});
      add(device.consumes, text(use, "counterSet"), counters(use, "counters"));
    }
    for (const json& taint : list(object, "taints")) {
      only(taint, {"key", "value", "effect", "timeAdded"});
      device.taints.push_back(
          {{text(taint, "key"), text(taint, "value"), text(taint, "effect")}, text(taint, "timeAdded")});
    }
    return device;
  }

  bool ours_ = true;
};

Result<Slice> slice_of(const json& object) {
  Reader reader;
  const json* metadata = reader.member(object, "metadata");
  Slice slice{metadata != nullptr ? reader.text(*metadata, "name") : ""};
  if (slice.name.empty())
    return fail(ErrorCode::data_corrupt, "the API server returned a ResourceSlice without a name");
  slice.uid = reader.text(*metadata, "uid");
  slice.resource_version = reader.text(*metadata, "resourceVersion");
  slice.owner = reader.owner(*metadata);
  static const json none = json::object();
  const json* spec = reader.member(object, "spec");
  reader.read_spec(spec != nullptr ? *spec : none, slice);
  slice.is_ours = reader.is_ours();
  return slice;
}

json parsed(std::string_view text) {
  return json::parse(text, nullptr, false);
}

}  // namespace

Result<Slice> parse_slice(std::string_view text) {
  const json object = parsed(text);
  Reader reader;
  if (reader.text(object, "kind") != "ResourceSlice") {
    return fail(ErrorCode::data_corrupt, "the API server's answer is not a ResourceSlice");
  }
  return slice_of(object);
}

Result<SliceList> parse_slice_list(std::string_view text) {
  const json object = parsed(text);
  Reader reader;
  const json* metadata = reader.member(object, "metadata");
  const json* items = reader.member(object, "items");
  if (metadata == nullptr || (items != nullptr && !items->is_array())) {
    return fail(ErrorCode::data_corrupt, "the API server's answer is not a list of ResourceSlices");
  }
  SliceList list;
  list.resource_version = reader.text(*metadata, "resourceVersion");
  list.continue_token = reader.text(*metadata, "continue");
  if (items == nullptr) return list;
  if (items->size() > kMaxSlices) {
    return fail(ErrorCode::data_corrupt, "the API server lists more than 512 ResourceSlices of this node and driver");
  }
  for (const json& item : *items) {
    TRY_ASSIGN(Slice slice, slice_of(item));
    list.slices.push_back(std::move(slice));
  }
  return list;
}

}  // namespace neuron::plugin::dra
