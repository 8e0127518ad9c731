#include "plugin/dra/slices/publisher.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "agent/base/parse.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

// ---- Writing

json attribute_json(const AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return {{"int", *number}};
  if (const auto* truth = std::get_if<bool>(&value)) return {{"bool", *truth}};
  if (const auto* version = std::get_if<Version>(&value)) return {{"version", version->text}};
  return {{"string", std::get<std::string>(value)}};
}

json quantities_json(const std::map<std::string, std::int64_t>& values) {
  json all = json::object();
  for (const auto& [name, value] : values) all[name] = {{"value", kube::quantity_text(value)}};
  return all;
}

// Claims have parts: of the cores by default all, of memory none, else the first would consume all. 0 cores fit on a
// held device, which is for admin access alone (docs/dra.md#admin-access).
void add_shares(json& object, const std::map<std::string, std::int64_t>& capacity) {
  object["allowMultipleAllocations"] = true;
  for (const auto& [name, value] : capacity) {
    const bool is_cores = name == "cores";
    json& policy = object["capacity"][name]["requestPolicy"];
    policy["default"] = is_cores ? kube::quantity_text(value) : "0";
    policy["validRange"] = {{"min", "0"}, {"max", kube::quantity_text(value)}};
    if (is_cores) policy["validRange"]["step"] = "1";
  }
}

json device_json(const PoolDevice& device, const OwnerNode& node) {
  json object = {{"name", device.name}};
  for (const auto& [name, value] : published_attributes(device, node.network_layers))
    object["attributes"][name] = attribute_json(value);
  if (!device.capacity.empty()) object["capacity"] = quantities_json(device.capacity);
  if (device.shareable_cores > 0) add_shares(object, device.capacity);
  if (!device.consumes.empty()) {
    object["consumesCounters"].push_back({{"counterSet", kCounterSet}, {"counters", quantities_json(device.consumes)}});
  }
  for (const Taint& taint : device.taints) {
    json& one = object["taints"].emplace_back(json{{"key", taint.key}, {"effect", taint.effect}});
    if (!taint.value.empty()) one["value"] = taint.value;
  }
  return object;
}

std::string made_for_key(const std::string& driver) {
  return driver + "/made-for";
}

Slice slice_at(std::size_t index, const std::vector<SliceContent>& wanted, const PoolIdentity& identity,
               std::int64_t generation) {
  const SliceContent& content = wanted[index];
  Slice slice;
  slice.name = slice_name(index, identity);
  json metadata = {{"name", slice.name}};
  if (!identity.node.uid.empty()) {
    metadata["ownerReferences"].push_back({{"apiVersion", "v1"},
                                           {"kind", "Node"},
                                           {"name", identity.node.name},
                                           {"uid", identity.node.uid},
                                           {"controller", true}});
  }
  if (!identity.made_for.empty()) metadata["annotations"][made_for_key(identity.driver)] = identity.made_for;
  json spec = {{"driver", identity.driver},
               {"nodeName", identity.node.name},
               {"pool", {{"name", identity.pool}, {"generation", generation}, {"resourceSliceCount", wanted.size()}}}};
  if (!content.counters.empty()) {
    spec["sharedCounters"].push_back({{"name", kCounterSet}, {"counters", quantities_json(content.counters)}});
  }
  for (const PoolDevice& device : content.devices) spec["devices"].push_back(device_json(device, identity.node));
  slice.json = {{"apiVersion", "resource.k8s.io/v1"},
                {"kind", "ResourceSlice"},
                {"metadata", std::move(metadata)},
                {"spec", std::move(spec)}};
  return slice;
}

// ---- Reading and comparing

// The member along `names`; null where there is none.
const json& member(const json& object, std::initializer_list<const char*> names) {
  static const json kNull;
  const json* found = kube::member_of(object, names);
  return found != nullptr ? *found : kNull;
}

// The elements of a list member, or the values of an object; none where it is absent or of another type.
const json& elements(const json& object, const char* name) {
  static const json kNone = json::array();
  const json& found = member(object, {name});
  return found.is_structured() ? found : kNone;
}

template <typename Change>
void change_each(json& object, const char* name, const Change& change) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_structured()) return;
  for (json& element : *found) change(element);
}

void to_number(json& holder, const char* name) {
  if (!holder.is_object()) return;
  const auto value = holder.find(name);
  if (value == holder.end() || !value->is_string()) return;
  if (const auto number = kube::parse_quantity(value->get_ref<const std::string&>())) *value = *number;
}

void quantity_to_number(json& holder) {
  to_number(holder, "value");
}

void capacity_to_numbers(json& capacity) {
  to_number(capacity, "value");
  if (!capacity.is_object() || !capacity.contains("requestPolicy")) return;
  json& policy = capacity["requestPolicy"];
  to_number(policy, "default");
  if (!policy.is_object() || !policy.contains("validRange")) return;
  for (const char* name : {"min", "max", "step"}) to_number(policy["validRange"], name);
}

json canonical_spec(const Slice& slice) {
  json spec = member(slice.json, {"spec"});
  change_each(spec, "sharedCounters", [](json& set) { change_each(set, "counters", quantity_to_number); });
  change_each(spec, "devices", [](json& device) {
    change_each(device, "capacity", capacity_to_numbers);
    change_each(device, "consumesCounters", [](json& use) { change_each(use, "counters", quantity_to_number); });
    change_each(device, "taints", [](json& taint) {
      if (taint.is_object()) taint.erase("timeAdded");
    });
  });
  return spec;
}

bool has_device_with(const Slice& slice, const char* name) {
  const json& devices = elements(member(slice.json, {"spec"}), "devices");
  return std::any_of(devices.begin(), devices.end(),
                     [&](const json& device) { return !elements(device, name).empty(); });
}

// Driver, node and pool of an object cannot change.
bool can_become(const Slice& stored, const Slice& wanted) {
  return spec_text(stored, "driver") == spec_text(wanted, "driver") &&
         spec_text(stored, "nodeName") == spec_text(wanted, "nodeName") && pool_of(stored) == pool_of(wanted);
}

// The times at which the taints of stored slices were added, by device and taint.
class TaintTimes {
 public:
  explicit TaintTimes(const std::vector<Slice>& stored) {
    for (const Slice& slice : stored) {
      for (const json& device : elements(member(slice.json, {"spec"}), "devices")) {
        for (const json& taint : elements(device, "taints")) {
          const std::string time = kube::text_of(taint, {"timeAdded"});
          if (!time.empty()) times_.try_emplace(key_of(device, taint), time);
        }
      }
    }
  }
  void fill(Slice& slice) const {
    change_each(slice.json["spec"], "devices", [&](json& device) {
      change_each(device, "taints", [&](json& taint) {
        const auto known = times_.find(key_of(device, taint));
        if (known != times_.end()) taint["timeAdded"] = known->second;
      });
    });
  }

 private:
  using Key = std::array<std::string, 4>;
  static Key key_of(const json& device, const json& taint) {
    return {kube::text_of(device, {"name"}), kube::text_of(taint, {"key"}), kube::text_of(taint, {"value"}),
            kube::text_of(taint, {"effect"})};
  }
  std::map<Key, std::string> times_;
};

// ---- Names

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kIndexDigits = 5, kSaltDigits = 8;

// The part of a slice's name behind its number and salt.
std::string name_end(const PoolIdentity& identity) {
  constexpr std::size_t kMaxBytes = 253, kDigestDigits = 16;
  const std::string rest = identity.driver + "-" + identity.node.name;
  if (kIndexDigits + kSaltDigits + 1 + rest.size() <= kMaxBytes) return "-" + rest;
  return "-x" + sha256_hex(rest).substr(0, kDigestDigits);
}

}  // namespace

Result<Slice> parse_slice(std::string_view text) {
  Slice slice;
  TRY_ASSIGN(slice.json, kube::parse_object(text, "the API server's answer"));
  if (kube::text_of(slice.json, {"kind"}) != "ResourceSlice") {
    return fail(ErrorCode::data_corrupt, "the API server's answer is not a ResourceSlice");
  }
  slice.name = kube::text_of(slice.json, {"metadata", "name"});
  slice.uid = kube::text_of(slice.json, {"metadata", "uid"});
  slice.resource_version = kube::text_of(slice.json, {"metadata", "resourceVersion"});
  if (slice.name.empty()) {
    return fail(ErrorCode::data_corrupt, "the API server returned a ResourceSlice without a name");
  }
  return slice;
}

Result<kube::ListPage> parse_slices(std::string_view text) {
  constexpr std::size_t kMaxSlices = 512;
  auto page = kube::parse_list_page(text);
  if (!page) return fail(std::move(page).error().with_context("ResourceSlices"));
  if (page->objects.size() > kMaxSlices) {
    return fail(ErrorCode::data_corrupt, "the API server lists more than 512 ResourceSlices of this node and driver");
  }
  return page;
}

std::string spec_text(const Slice& slice, const char* name) {
  return kube::text_of(slice.json, {"spec", name});
}

std::string pool_of(const Slice& slice) {
  return kube::text_of(slice.json, {"spec", "pool", "name"});
}

std::int64_t generation_of(const Slice& slice) {
  const json& generation = member(slice.json, {"spec", "pool", "generation"});
  return generation.is_number_integer() ? std::max<std::int64_t>(generation.get<std::int64_t>(), 0) : 0;
}

bool has_counters(const Slice& slice) {
  return !elements(member(slice.json, {"spec"}), "sharedCounters").empty() ||
         has_device_with(slice, "consumesCounters");
}

bool has_taints(const Slice& slice) {
  return has_device_with(slice, "taints");
}

bool has_shares(const Slice& slice) {
  const json& devices = elements(member(slice.json, {"spec"}), "devices");
  return std::any_of(devices.begin(), devices.end(), [](const json& device) {
    const bool has_policy = member(device, {"capacity", "cores", "requestPolicy"}).is_object();
    return has_policy && kube::is_true(device, "allowMultipleAllocations");
  });
}

bool is_same(const Slice& a, const Slice& b) {
  const auto owners = [](const Slice& slice) { return member(slice.json, {"metadata", "ownerReferences"}); };
  return owners(a) == owners(b) && canonical_spec(a) == canonical_spec(b);
}

bool has_same_counters(const Slice& a, const Slice& b) {
  return member(canonical_spec(a), {"sharedCounters"}) == member(canonical_spec(b), {"sharedCounters"});
}

SyncPlan plan_sync(const std::vector<Slice>& stored, const std::vector<SliceContent>& wanted,
                   const PoolIdentity& identity) {
  struct Place {
    Slice slice;
    const Slice* stored = nullptr;  // the object that becomes `slice`; null: it is created
    bool is_same = false;
  };
  std::int64_t generation = 0;
  std::map<std::string, const Slice*> by_name;
  for (const Slice& slice : stored) {
    by_name[slice.name] = &slice;
    if (pool_of(slice) == identity.pool) generation = std::max(generation, generation_of(slice));
  }
  std::vector<Place> places;
  std::size_t created = 0, changed = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Place place{slice_at(i, wanted, identity, generation)};
    const auto found = by_name.find(place.slice.name);
    if (found != by_name.end() && can_become(*found->second, place.slice)) {
      place.stored = found->second;
      place.is_same = is_same(*place.stored, place.slice);
      by_name.erase(found);
    }
    created += place.stored == nullptr ? 1 : 0;
    changed += place.is_same ? 0 : 1;
    places.push_back(std::move(place));
  }
  SyncPlan plan;
  for (const auto& [name, slice] : by_name) plan.deletes.push_back(*slice);
  const bool rises = created > 0 || changed > 1;
  // At the greatest number it starts over, as all slices are written.
  if (rises) generation = generation < std::numeric_limits<std::int64_t>::max() ? generation + 1 : 1;
  const TaintTimes times(stored);
  for (Place& place : places) {
    if (place.is_same && !rises) continue;
    json& object = place.slice.json;
    object["spec"]["pool"]["generation"] = generation;
    times.fill(place.slice);
    if (place.stored != nullptr) {
      object["metadata"]["uid"] = place.slice.uid = place.stored->uid;
      object["metadata"]["resourceVersion"] = place.slice.resource_version = place.stored->resource_version;
    }
    (place.stored != nullptr ? plan.updates : plan.creates).push_back(std::move(place.slice));
  }
  return plan;
}

std::string slice_name(std::size_t index, const PoolIdentity& identity) {
  std::string number(kIndexDigits, '0');
  for (auto digit = number.rbegin(); digit != number.rend(); ++digit, index /= 16) *digit = kDigits[index % 16];
  return number + identity.salt + name_end(identity);
}

std::string salt_in_use(const std::vector<Slice>& stored, const PoolIdentity& identity) {
  constexpr std::size_t kSalted = kIndexDigits + kSaltDigits;
  const std::string end = name_end(identity);
  std::string least;
  for (const Slice& slice : stored) {
    const bool is_salted = pool_of(slice) == identity.pool && slice.name.find_first_not_of(kDigits) == kSalted &&
                           slice.name.substr(kSalted) == end;
    if (!is_salted) continue;
    std::string salt = slice.name.substr(kIndexDigits, kSaltDigits);
    if (least.empty() || salt < least) least = std::move(salt);
  }
  return least;
}

std::string made_for(const Slice& slice, const std::string& driver) {
  const std::string key = made_for_key(driver);
  return kube::text_of(slice.json, {"metadata", "annotations", key.c_str()});
}

std::vector<Slice> whole_slices(const std::vector<SliceContent>& wanted, const PoolIdentity& identity) {
  return plan_sync({}, wanted, identity).creates;
}

std::string slice_text(const Slice& slice) {
  return slice.json.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string published_text(const Layout& layout, const PoolIdentity& identity) {
  json items = json::array();
  for (Slice& slice : whole_slices(layout.slices, identity)) items.push_back(std::move(slice.json));
  const json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
  return list.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace neuron::plugin::dra
