#pragma once

#include "test/fakes/fake_api.h"
#include "test/fakes/fake_api_owners.h"

// What FakeApi does with Nodes alone, which test/fakes/fake_api.h includes.
namespace neuron::fakes {

inline void FakeApi::write_as(const std::string& manager, const std::string& path, const Json& merge) {
  change([&] {
    const ApiPath place = api_path(path);
    const Json before = objects_.at(place.key());
    Json after = before;
    after.merge_patch(merge);
    FieldOwners owners(before);
    owners.updated(manager, place.subresource, before, after);
    owners.store(after);
    store(place, std::move(after));
  });
}

inline kube::ApiReply FakeApi::apply_node(const ApiPath& path, const Json& wanted, const Query& query) {
  const std::string uid = wanted.value("/metadata/uid"_json_pointer, "");
  const auto found = objects_.find(path.key());
  const Json live = found != objects_.end() ? found->second : Json();
  const std::string of_live = live.is_null() ? "" : live["metadata"].value("uid", "");
  if (!uid.empty() && uid != of_live) {
    return status(409, "Conflict",
                  "Operation cannot be fulfilled on nodes \"" + path.name +
                      "\": uid mismatch: the provided object specified uid " + uid + ", and " +
                      (live.is_null() ? "no existing object was found" : "the existing object has " + of_live));
  }
  Json object = live.is_null() ? Json{{"metadata", {{"name", path.name}}}} : live;
  FieldOwners owners(object);
  Json part = wanted;  // of the status the main resource knows nothing
  if (path.subresource.empty()) part.erase("status");
  const bool forced = query.contains("force") && query.at("force") == "true";
  const auto conflicts = owners.apply(query.at("fieldManager"), path.subresource, part, forced, object);
  if (!conflicts.empty()) {
    std::string words;
    for (const std::string& conflict : conflicts) words += (words.empty() ? "" : ", ") + conflict;
    return status(409, "Conflict", "Apply failed with " + std::to_string(conflicts.size()) + " conflicts: " + words);
  }
  if (const std::string words = wrong_with(path, object); !words.empty()) return status(422, "Invalid", words);
  owners.store(object);
  if (object != live) store(path, std::move(object));
  return answer(200, shown(path, objects_.at(path.key())));
}

}  // namespace neuron::fakes
