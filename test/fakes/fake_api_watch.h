#pragma once

#include "test/fakes/fake_api.h"

// What FakeApi's watches see; test/fakes/fake_api.h includes it.
namespace neuron::fakes {

inline std::vector<std::string> FakeApi::first_lines(const ApiPath& path, const FieldSelector& selector) const {
  std::vector<std::string> lines;
  for (const auto& [key, object] : objects_) {
    if (!key.starts_with(path.list_key()) || !selector.matches(object)) continue;
    lines.push_back(Json{{"type", "ADDED"}, {"object", shown(path, object)}}.dump());
  }
  return lines;
}

inline std::vector<std::string> FakeApi::lines_since(std::size_t from, const ApiPath& path,
                                                     const FieldSelector& selector) const {
  std::vector<std::string> lines;
  for (std::size_t i = from; i < history_.size(); ++i) {
    const Event& event = history_[i];
    if (!event.line.empty()) lines.push_back(event.line);
    if (event.is_bookmark) {
      const Json object{{"metadata", {{"resourceVersion", std::to_string(event.version)}}}};
      lines.push_back(Json{{"type", "BOOKMARK"}, {"object", shown(path, object)}}.dump());
    }
    const bool was = event.key.starts_with(path.list_key()) && selector.matches(event.before);
    const bool is = event.key.starts_with(path.list_key()) && selector.matches(event.after);
    if (!was && !is) continue;
    Json object = shown(path, is ? event.after : event.before);
    object["metadata"]["resourceVersion"] = std::to_string(event.version);
    lines.push_back(Json{{"type", !is ? "DELETED" : was ? "MODIFIED" : "ADDED"}, {"object", object}}.dump());
  }
  return lines;
}

inline Result<kube::ApiReply> FakeApi::stream(const kube::ApiCall& call, const OnLine& on_line,
                                              const std::stop_token& stop) {
  Lock lock(mutex_);
  record(call);
  bool is_lost = false;
  if (auto failed = failure(call, stop, lock, is_lost)) return *std::move(failed);
  const ApiPath path = api_path(call.path);
  const Query query = query_of(call.query);
  const auto value = [&](const char* name) { return query.contains(name) ? query.at(name) : ""; };
  const FieldSelector selector(value("fieldSelector"));
  if (!is_served(path)) return status(404, "NotFound", "the server could not find the requested resource");
  if (!selector.unknown().empty()) return status(400, "BadRequest", selector.unknown());
  if (value("watch") != "true" && value("watch") != "1") return status(400, "BadRequest", "this is no watch");
  const std::string version = value("resourceVersion");
  const long since = version.empty() ? 0 : std::stol(version);
  if (since != 0 && since < oldest_) {
    const Json expired =
        status_object(410, "Expired", "too old resource version: " + version + " (" + std::to_string(oldest_) + ")");
    if (expired_status_) return answer(410, expired);
    lock.unlock();
    on_line(Json{{"type", "ERROR"}, {"object", expired}}.dump());
    return kube::ApiReply{200, ""};
  }
  std::vector<std::string> lines = since == 0 ? first_lines(path, selector) : std::vector<std::string>();
  std::size_t next = history_.size();
  while (since != 0 && next > 0 && history_[next - 1].version > since) --next;
  const long ends = ends_;
  ++open_;
  for (;;) {
    const std::vector<std::string> more = lines_since(next, path, selector);
    lines.insert(lines.end(), more.begin(), more.end());
    next = history_.size();
    const bool is_last = ends_ != ends;
    bool goes_on = true;
    ++changes_;
    changed_.notify_all();
    lock.unlock();
    for (const std::string& line : std::exchange(lines, {})) {
      goes_on = goes_on && !stop.stop_requested() && on_line(line);
    }
    lock.lock();
    if (is_last || !goes_on || stop.stop_requested()) break;
    if (!changed_.wait(lock, stop, [&] { return history_.size() != next || ends_ != ends; })) break;
  }
  --open_;
  ++changes_;
  changed_.notify_all();
  return kube::ApiReply{200, ""};
}

}  // namespace neuron::fakes
