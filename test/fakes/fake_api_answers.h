#pragma once

#include <algorithm>

#include "test/fakes/fake_api.h"

// The bodies of FakeApi's calls, which test/fakes/fake_api.h includes.
namespace neuron::fakes {

// ---- Of the outside world

inline void FakeApi::put(const std::string& path, Json object) {
  change([&] {
    const ApiPath place = api_path(path);
    object["metadata"]["name"] = place.name;
    if (!place.scope.empty()) object["metadata"]["namespace"] = place.scope;
    store(place, std::move(object));
  });
}

inline void FakeApi::drop(const std::string& path) {
  change([&] { store(api_path(path), nullptr); });
}

inline FakeApi::Json FakeApi::at(const std::string& path) const {
  const Lock lock(mutex_);
  const ApiPath place = api_path(path);
  const auto found = objects_.find(place.key());
  return found != objects_.end() ? shown(place, found->second) : Json();
}

inline std::vector<FakeApi::Json> FakeApi::all(const std::string& path) const {
  const Lock lock(mutex_);
  const ApiPath place = api_path(path);
  std::vector<Json> found;
  for (const auto& [key, object] : objects_) {
    if (key.starts_with(place.list_key())) found.push_back(shown(place, object));
  }
  return found;
}

inline std::vector<kube::ApiCall> FakeApi::calls() const {
  const Lock lock(mutex_);
  return calls_;
}

inline std::vector<kube::ApiCall> FakeApi::writes() const {
  std::vector<kube::ApiCall> made = calls();
  std::erase_if(made, [](const kube::ApiCall& call) {
    return call.method == Method::get || call.query.find("dryRun") != std::string::npos;
  });
  return made;
}

inline int FakeApi::open_watches() const {
  const Lock lock(mutex_);
  return open_;
}

inline bool FakeApi::wait(const std::function<bool()>& holds, std::chrono::milliseconds patience) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    long seen = 0;
    {
      const Lock lock(mutex_);
      seen = changes_;
    }
    if (holds()) return true;
    Lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [&] { return changes_ != seen; })) return false;
  }
}

// ---- Calls

inline Result<kube::ApiReply> FakeApi::call(const kube::ApiCall& call) {
  Lock lock(mutex_);
  record(call);
  bool is_lost = false;
  auto failed = failure(call, {}, lock, is_lost);
  if (failed && !is_lost) return *std::move(failed);
  kube::ApiReply reply = serve(call);
  ++changes_;
  changed_.notify_all();
  if (failed) return *std::move(failed);
  return reply;
}

inline std::optional<Result<kube::ApiReply>> FakeApi::failure(const kube::ApiCall& call, const std::stop_token& stop,
                                                              Lock& lock, bool& is_lost) {
  const auto meant = std::find_if(failures_.begin(), failures_.end(), [&](const Failure& failure) {
    return (!failure.method || *failure.method == call.method) &&
           call.path.find(failure.path_part) != std::string::npos;
  });
  if (meant == failures_.end()) return std::nullopt;
  const Failure found = *meant;
  if (meant->times != kAlways && --meant->times <= 0) failures_.erase(meant);
  is_lost = found.lost;
  if (found.hangs) {
    const long before = let_go_;
    changed_.wait(lock, stop, [&] { return let_go_ != before; });
    if (stop.stop_requested()) return kube::ApiReply{200, ""};
    return fail(ErrorCode::deadline_exceeded, "https://fake" + call.path + " did not answer within 5000 ms");
  }
  if (found.error) return fail(*found.error);
  static const std::map<int, std::string> reasons{{400, "BadRequest"},    {401, "Unauthorized"},
                                                  {403, "Forbidden"},     {404, "NotFound"},
                                                  {409, "Conflict"},      {410, "Expired"},
                                                  {422, "Invalid"},       {429, "TooManyRequests"},
                                                  {500, "InternalError"}, {503, "ServiceUnavailable"},
                                                  {504, "Timeout"}};
  const auto reason = reasons.find(found.status);
  return status(found.status, reason != reasons.end() ? reason->second : "", found.words);
}

inline kube::ApiReply FakeApi::serve(const kube::ApiCall& call) {
  if (const auto known = discovery(call.path)) return *known;
  const ApiPath path = api_path(call.path);
  if (!is_served(path)) return status(404, "NotFound", "the server could not find the requested resource");
  const Query query = query_of(call.query);
  if (call.method == Method::get && path.name.empty()) return list(path, query);
  if (call.method == Method::get) {
    const auto found = objects_.find(path.key());
    if (found == objects_.end()) return not_found(path);
    if (call.accept.find("as=PartialObjectMetadata") == std::string::npos)
      return answer(200, shown(path, found->second));
    return answer(
        200,
        {{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", found->second["metadata"]}});
  }
  Json body = call.body.empty() ? Json::object() : Json::parse(call.body, nullptr, false);
  if (!body.is_object()) return status(400, "BadRequest", "the object provided is unrecognized: no JSON object");
  if (call.method == Method::remove) return path.name.empty() ? remove_all(path, query) : remove(path, body);
  if (call.method == Method::create && query.contains("dryRun")) return try_create(path, std::move(body));
  if (call.method == Method::create) return create(path, std::move(body));
  if (call.method == Method::replace) return update(path, std::move(body));
  return patch(path, body, call.method == Method::apply, query);
}

inline bool FakeApi::is_served(const ApiPath& path) const {
  if (path.group == "resource.k8s.io") return std::find(served_.begin(), served_.end(), path.version) != served_.end();
  return !path.version.empty() && !path.resource.empty();
}

inline std::optional<kube::ApiReply> FakeApi::discovery(const std::string& path) const {
  if (path == "/version") {
    return answer(200, {{"major", "1"}, {"minor", minor_}, {"gitVersion", git_}, {"platform", "linux/amd64"}});
  }
  if (path != "/apis/resource.k8s.io") return std::nullopt;
  if (served_.empty()) return status(404, "NotFound", "the server could not find the requested resource");
  Json versions = Json::array();
  for (const std::string& name : served_) {
    versions.push_back({{"groupVersion", "resource.k8s.io/" + name}, {"version", name}});
  }
  return answer(200, {{"kind", "APIGroup"},
                      {"apiVersion", "v1"},
                      {"name", "resource.k8s.io"},
                      {"versions", versions},
                      {"preferredVersion", versions[0]}});
}

inline kube::ApiReply FakeApi::list(const ApiPath& path, const Query& query) const {
  const auto value = [&](const char* name) { return query.contains(name) ? query.at(name) : ""; };
  const FieldSelector selector(value("fieldSelector"));
  if (!selector.unknown().empty()) return status(400, "BadRequest", selector.unknown());
  const std::string limit = value("limit");
  const std::size_t most = limit.empty() || limit == "0" ? objects_.size() + 1 : std::stoul(limit);
  const auto after = parts_of(value("continue"), '@');  // "version@key"
  if (after.size() == 2 && std::stol(after[0]) < oldest_) {
    return status(410, "Expired", "The provided continue parameter is too old to display a consistent list result.");
  }
  Json items = Json::array();
  Json metadata{{"resourceVersion", std::to_string(version_)}};
  std::string last;
  for (const auto& [key, object] : objects_) {
    if (!key.starts_with(path.list_key()) || !selector.matches(object)) continue;
    if (after.size() == 2 && key <= after[1]) continue;
    if (items.size() == most) {
      metadata["continue"] = std::to_string(version_) + "@" + last;
      break;
    }
    items.push_back(object);  // without kind and apiVersion, as servers do it
    last = key;
  }
  return answer(
      200,
      {{"kind", path.kind() + "List"}, {"apiVersion", path.api_version()}, {"metadata", metadata}, {"items", items}});
}

// ---- Writing

inline void FakeApi::store(const ApiPath& path, Json object) {
  const auto found = objects_.find(path.key());
  Json before = found != objects_.end() ? found->second : Json();
  if (object.is_null() && before.is_null()) return;
  ++version_;
  if (!object.is_null()) {
    object.erase("apiVersion");
    object.erase("kind");
    strip(path, object);
    Json& metadata = object["metadata"];
    const Json old = before.is_null() ? Json::object() : before["metadata"];
    const long generation = old.value("generation", 0L);
    const bool is_same_spec = !before.is_null() && before.value("spec", Json()) == object.value("spec", Json());
    metadata["generation"] = is_same_spec ? generation : generation + 1;
    metadata["uid"] = old.value("uid", metadata.value("uid", "uid-" + std::to_string(version_)));
    metadata["creationTimestamp"] = old.value("creationTimestamp", "2026-01-01T00:00:00Z");
    metadata["resourceVersion"] = std::to_string(version_);
    objects_[path.key()] = object;
  } else {
    objects_.erase(path.key());
  }
  history_.push_back({version_, path.key(), std::move(before), std::move(object)});
}

inline void FakeApi::strip(const ApiPath& path, Json& object) const {
  if (path.resource != "resourceslices" || !object.contains("spec")) return;
  Json& spec = object["spec"];
  if (!gates_.partitionable_devices) spec.erase("sharedCounters");
  if (!spec.contains("devices")) return;
  for (Json& device : spec["devices"]) {
    for (Json* part : {&device, device.contains("basic") ? &device["basic"] : &device}) {  // v1beta1 nests them
      if (!gates_.partitionable_devices) part->erase("consumesCounters");
      if (!gates_.device_taints) part->erase("taints");
      if (gates_.consumable_capacity) continue;
      part->erase("allowMultipleAllocations");
      if (!part->contains("capacity")) continue;
      for (Json& capacity : (*part)["capacity"]) capacity.erase("requestPolicy");
    }
  }
}

inline std::string FakeApi::wrong_with(const ApiPath& path, const Json& object) const {
  const std::string words = rule_ ? rule_(object) : "";
  return words.empty() ? "" : path.kind() + "." + path.group + " \"" + path.name + "\" is invalid: " + words;
}

inline kube::ApiReply FakeApi::create(const ApiPath& collection, Json object) {
  ApiPath path = collection;
  Json& metadata = object["metadata"];
  if (object.value("kind", "") != path.kind() || object.value("apiVersion", "") != path.api_version()) {
    return status(
        400, "BadRequest",
        "the API version or kind in the data does not match the expected " + path.api_version() + " " + path.kind());
  }
  if (!metadata.value("resourceVersion", "").empty()) {
    return status(500, "", "resourceVersion should not be set on objects to be created");
  }
  if (metadata.value("name", "").empty()) {
    if (metadata.value("generateName", "").empty()) {
      return status(422, "Invalid",
                    path.kind() + " \"\" is invalid: metadata.name: Required value: name or generateName is required");
    }
    metadata["name"] = metadata["generateName"].get<std::string>() + "x" + std::to_string(1000 + ++names_);
  }
  path.name = metadata["name"].get<std::string>();
  if (!path.scope.empty()) metadata["namespace"] = path.scope;
  metadata.erase("uid");
  if (objects_.contains(path.key())) {
    return status(409, "AlreadyExists", path.resource + "." + path.group + " \"" + path.name + "\" already exists");
  }
  if (const std::string words = wrong_with(path, object); !words.empty()) return status(422, "Invalid", words);
  store(path, std::move(object));
  return answer(201, shown(path, objects_.at(path.key())));
}

// What create() would answer.
inline kube::ApiReply FakeApi::try_create(const ApiPath& path, Json object) {
  const auto objects = objects_;
  const std::size_t happened = history_.size();
  const long version = version_;
  kube::ApiReply reply = create(path, std::move(object));
  objects_ = objects;
  history_.resize(happened);
  version_ = version;
  return reply;
}

inline kube::ApiReply FakeApi::update(const ApiPath& path, Json object) {
  Json& metadata = object["metadata"];
  if (metadata.value("name", "") != path.name) {
    return status(400, "BadRequest", "the name of the object does not match the name on the URL");
  }
  const auto found = objects_.find(path.key());
  if (found == objects_.end()) return not_found(path);
  const Json& old = found->second["metadata"];
  const std::string of_version = metadata.value("resourceVersion", "");
  const std::string of_uid = metadata.value("uid", "");
  if ((!of_version.empty() && of_version != old["resourceVersion"]) || (!of_uid.empty() && of_uid != old["uid"])) {
    return status(
        409, "Conflict",
        "Operation cannot be fulfilled on " + path.resource + "." + path.group + " \"" + path.name +
            "\": the object has been modified; please apply your changes to the latest version and try again");
  }
  if (const std::string words = wrong_with(path, object); !words.empty()) return status(422, "Invalid", words);
  Json wanted = path.subresource == "status" ? found->second : object;
  if (path.subresource == "status") {
    wanted["status"] = object.value("status", Json::object());
  } else if (path.has_status()) {
    wanted.erase("status");
    if (found->second.contains("status")) wanted["status"] = found->second["status"];
  }
  wanted.erase("apiVersion");
  wanted.erase("kind");
  for (const char* name : {"uid", "resourceVersion", "generation", "creationTimestamp"})
    wanted["metadata"][name] = old[name];
  strip(path, wanted);
  if (wanted != found->second) store(path, std::move(wanted));  // what changes nothing is no new version
  return answer(200, shown(path, objects_.at(path.key())));
}

inline kube::ApiReply FakeApi::patch(const ApiPath& path, const Json& wanted, bool is_apply, const Query& query) {
  if (is_apply && !query.contains("fieldManager")) {
    return status(
        422, "Invalid",
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch");
  }
  if (is_apply && path.resource == "nodes") return apply_node(path, wanted, query);
  const auto found = objects_.find(path.key());
  if (found == objects_.end() && !is_apply) return not_found(path);
  if (found == objects_.end()) {
    ApiPath collection = path;
    collection.name = "";
    Json object = wanted;
    object["metadata"]["name"] = path.name;
    return create(collection, std::move(object));
  }
  Json object = shown(path, found->second);
  object.merge_patch(wanted);
  return update(path, std::move(object));
}

inline kube::ApiReply FakeApi::remove(const ApiPath& path, const Json& options) {
  const auto found = objects_.find(path.key());
  if (found == objects_.end()) return not_found(path);
  const Json before = found->second;
  const Json wanted = options.value("preconditions", Json::object());
  for (const char* name : {"uid", "resourceVersion"}) {
    if (wanted.contains(name) && wanted[name] != before["metadata"][name]) {
      return status(409, "Conflict",
                    "Operation cannot be fulfilled: Precondition failed: " + std::string(name) +
                        " in precondition: " + wanted[name].dump());
    }
  }
  if (!before["metadata"].value("finalizers", Json::array()).empty()) {
    Json object = before;
    object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z";
    if (object != before) store(path, std::move(object));
    return answer(200, shown(path, objects_.at(path.key())));
  }
  store(path, nullptr);
  return answer(200, shown(path, before));
}

inline kube::ApiReply FakeApi::remove_all(const ApiPath& path, const Query& query) {
  const FieldSelector selector(query.contains("fieldSelector") ? query.at("fieldSelector") : "");
  if (!selector.unknown().empty()) return status(400, "BadRequest", selector.unknown());
  std::vector<ApiPath> meant;
  for (const auto& [key, object] : objects_) {
    if (!key.starts_with(path.list_key()) || !selector.matches(object)) continue;
    meant.push_back(path);
    meant.back().name = object["metadata"]["name"].get<std::string>();
    meant.back().scope = object["metadata"].value("namespace", "");
  }
  for (const ApiPath& one : meant) std::ignore = remove(one, Json::object());
  return answer(200, {{"kind", path.kind() + "List"}, {"apiVersion", path.api_version()}, {"items", Json::array()}});
}

}  // namespace neuron::fakes
