#include "tools/neuron-agent/node_groups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::agent {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{256} << 10U;
constexpr std::size_t kMaxEntries = 256;  // groups, and patterns in a list
constexpr std::size_t kMaxText = 253;     // the longest name of a node

Error wrong(const std::string& where, const std::string& why) {
  return make_error(ErrorCode::data_corrupt, where + ": " + why);
}

Error cannot_read(const std::string& path) {
  Error error = error_from_errno(errno, path);
  error.message += "; give a readable file, such as one from a mounted config map, or omit the option";
  return error;
}

// The document. Errors: no JSON, or a key twice in one object, of which the parser would keep one.
Result<json> parse_document(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto watch = [&](int /*depth*/, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second && twice.empty()) {
      twice = printable(parsed.get<std::string>(), 64);
    }
    return true;
  };
  json document = json::parse(text, watch, false);
  if (document.is_discarded()) return fail(wrong("the text", "is not valid JSON; use a JSON validator"));
  if (!twice.empty()) return fail(wrong("\"" + twice + "\"", "appears twice in one object; keep one"));
  return document;
}

// An object with no key but `known`.
Result<void> check_object(const json& value, const std::string& where, const std::set<std::string_view>& known) {
  std::string names;
  for (const std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
  if (!value.is_object()) return fail(wrong(where, "is not an object with the keys " + names));
  for (const auto& [key, ignored] : value.items()) {
    if (!known.contains(key))
      return fail(wrong(where, "\"" + printable(key, 64) + "\" is not a key; valid keys are " + names));
  }
  return {};
}

Result<std::string> text_in(const json& value, const std::string& where) {
  if (!value.is_string()) return fail(wrong(where, "is not a string; write it in double quotes"));
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty() || text.size() > kMaxText || printable(text, kMaxText) != text) {
    return fail(wrong(where, "is empty, longer than 253 bytes, or has non-printable characters"));
  }
  return text;
}

Result<std::vector<std::string>> patterns_in(const json& group, const char* key, const std::string& where) {
  std::vector<std::string> patterns;
  const auto found = group.find(key);
  if (found == group.end()) return patterns;
  const std::string here = where + "." + key;
  if (!found->is_array() || found->empty() || found->size() > kMaxEntries) {
    return fail(wrong(here, "is not a list of 1 to 256 strings; omit the key to match every node"));
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    TRY_ASSIGN(std::string pattern, text_in((*found)[i], here + "[" + std::to_string(i) + "]"));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

Result<OfferChoice> offer_in(const json& group, const std::string& where) {
  OfferChoice offer;
  if (const auto found = group.find("resources"); found != group.end()) {
    TRY_ASSIGN(const std::string text, text_in(*found, where + ".resources"));
    auto resources = core::parse_resource_list(text);
    if (!resources) return fail(wrong(where + ".resources", resources.error().message));
    offer.resources = *std::move(resources);
  }
  if (const auto found = group.find("core-devices"); found != group.end()) {
    TRY_ASSIGN(const std::string text, text_in(*found, where + ".core-devices"));
    auto devices = core::parse_core_devices(text);
    if (!devices) return fail(wrong(where + ".core-devices", devices.error().message));
    offer.core_devices = *std::move(devices);
    offer.core_devices_said = true;
  }
  return offer;
}

Result<NodeGroup> group_in(const json& value, const std::string& where) {
  TRY(check_object(value, where, {"name", "instance-types", "node-names", "resources", "core-devices"}));
  NodeGroup group;
  if (!value.contains("name"))
    return fail(wrong(where, "has no \"name\"; add one, the log names the group that applies"));
  TRY_ASSIGN(group.name, text_in(value["name"], where + ".name"));
  TRY_ASSIGN(group.instance_types, patterns_in(value, "instance-types", where));
  TRY_ASSIGN(group.node_names, patterns_in(value, "node-names", where));
  TRY_ASSIGN(group.offer, offer_in(value, where));
  return group;
}

bool can_match(std::string_view pattern) {
  return pattern.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.*?") == std::string_view::npos;
}

bool any_matches(std::string_view text, const std::vector<std::string>& patterns) {
  return !text.empty() &&
         std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches_pattern(text, pattern); });
}

}  // namespace

Result<std::vector<NodeGroup>> parse_node_groups(std::string_view text) {
  TRY_ASSIGN(const json document, parse_document(text));
  TRY(check_object(document, "the document", {"groups"}));
  const auto list = document.find("groups");
  if (list == document.end() || !list->is_array() || list->empty() || list->size() > kMaxEntries) {
    return fail(wrong("groups", "is not a list of 1 to 256 groups"));
  }
  std::vector<NodeGroup> groups;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string where = "groups[" + std::to_string(i) + "]";
    TRY_ASSIGN(NodeGroup group, group_in((*list)[i], where));
    if (!groups.empty() && groups.back().instance_types.empty() && groups.back().node_names.empty()) {
      return fail(wrong(where, "is never reached: \"" + groups.back().name +
                                   "\" before it has no patterns and matches every node; move that one to the end"));
    }
    const auto named_alike = [&](const NodeGroup& other) { return other.name == group.name; };
    if (std::ranges::any_of(groups, named_alike)) {
      return fail(wrong(where, "an earlier group is named \"" + group.name +
                                   "\" too; use another name, the log names the group that applies"));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

Result<std::vector<NodeGroup>> read_node_groups(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return fail(cannot_read(path));
  std::string text(kMaxBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0) return fail(cannot_read(path));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxBytes) return fail(wrong(path, "is larger than 256 KiB"));
  text.resize(size);
  auto groups = parse_node_groups(text);
  if (!groups) return fail(std::move(groups).error().with_context(path));
  return groups;
}

Result<const NodeGroup*> find_group(const std::vector<NodeGroup>& groups, const NodeIdentity& node) {
  for (const NodeGroup& group : groups) {
    if (!group.instance_types.empty() && !any_matches(node.instance_type, group.instance_types)) continue;
    if (!group.node_names.empty() && node.node_name.empty()) {
      return fail(ErrorCode::failed_precondition, "group \"" + group.name +
                                                      "\" uses node-names, but the name of this node is unknown; set "
                                                      "NODE_NAME from the pod's spec.nodeName, or --node-name");
    }
    if (!group.node_names.empty() && !any_matches(node.node_name, group.node_names)) continue;
    return &group;
  }
  return nullptr;
}

std::vector<std::string> doubts_about(const std::vector<NodeGroup>& groups) {
  std::vector<std::string> doubts;
  for (const NodeGroup& group : groups) {
    for (const auto& [key, patterns] :
         {std::pair("instance-types", &group.instance_types), std::pair("node-names", &group.node_names)}) {
      for (const std::string& pattern : *patterns) {
        if (can_match(pattern)) continue;
        doubts.push_back("group \"" + group.name + "\": the pattern \"" + pattern + "\" of " + key +
                         " matches no node: node names have lower case letters, digits, '-' and '.' only");
      }
    }
  }
  return doubts;
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in = 0;
  std::size_t star = std::string_view::npos;  // the last * met in the pattern
  std::size_t resume = 0;                     // where in the text it ends for now
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      resume = at;
    } else if (in < pattern.size() && (pattern[in] == '?' || pattern[in] == text[at])) {
      ++in;
      ++at;
    } else if (star != std::string_view::npos) {
      in = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (in < pattern.size() && pattern[in] == '*') ++in;
  return in == pattern.size();
}

}  // namespace neuron::agent
