#include "tools/neuron-gather/manifest.h"

#include <nlohmann/json.hpp>
#include <set>

#include "agent/base/parse.h"

namespace neuron::gather {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "neuron-gather/1";
constexpr std::size_t kMaxText = 300;

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_string()) return "";
  return printable(at->get_ref<const std::string&>(), kMaxText);
}

bool is_true(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

// The parser does not recurse; what is nested is never visited.
std::optional<Json> parse_previous(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || text_of(json, "format") != kFormat) return std::nullopt;
  return json;
}

void inherit(Manifest& manifest, std::set<Unreadable>& unreadable, const Json& previous) {
  manifest.tool_version = text_of(previous, "tool_version");
  manifest.captured_at = text_of(previous, "captured_at");
  manifest.origin = text_of(previous, "origin") == "live" ? Origin::live : Origin::directory;
  manifest.with_commands = manifest.with_commands && is_true(previous, "with_commands");
  manifest.anonymised = manifest.anonymised || is_true(previous, "anonymised");
  manifest.complete = manifest.complete && is_true(previous, "complete");
  const auto list = previous.find("unreadable");
  if (list == previous.end() || !list->is_array()) return;
  for (const Json& entry : *list) {
    if (unreadable.size() >= Capture::kMaxUnreadable) return;
    if (entry.is_object()) unreadable.insert({text_of(entry, "path"), text_of(entry, "reason")});
  }
}

}  // namespace

std::string manifest_text(Manifest manifest, const Capture& capture, const std::optional<std::string>& previous) {
  std::set<Unreadable> unreadable;
  for (const Unreadable& one : capture.unreadable()) {
    unreadable.insert({printable(one.path, kMaxText), printable(one.reason, kMaxText)});
  }
  if (const auto json = parse_previous(previous)) inherit(manifest, unreadable, *json);
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json json;
  json["format"] = kFormat;
  json["tool_version"] = manifest.tool_version;
  json["captured_at"] = manifest.captured_at;
  json["instance_type"] = text_or_null(manifest.instance_type);
  json["kernel"] = text_or_null(manifest.kernel);
  json["origin"] = manifest.origin == Origin::live ? "live" : "directory";
  json["with_commands"] = manifest.with_commands;
  json["anonymised"] = manifest.anonymised;
  json["complete"] = manifest.complete;
  json["unreadable"] = Json::array();
  for (const Unreadable& one : unreadable) json["unreadable"].push_back({{"path", one.path}, {"reason", one.reason}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace neuron::gather
