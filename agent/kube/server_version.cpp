#include "agent/kube/server_version.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/base/parse.h"
#include "agent/kube/json_text.h"

namespace neuron::kube {
namespace {

constexpr std::size_t kMaxVersions = 16;

// The digits at the beginning of `text`, which is shortened by them.
std::optional<int> take_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_int(text.substr(0, end), 0, 9999);
  text.remove_prefix(end);
  return number;
}

// "v1", "v1beta2": goes into paths.
bool is_version_name(std::string_view name) {
  return name.size() >= 2 && name.size() <= 20 && name[0] == 'v' &&
         std::all_of(name.begin(), name.end(),
                     [](char letter) { return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9'); });
}

}  // namespace

std::optional<ServerVersion> parse_git_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  ServerVersion version;
  int* const parts[] = {&version.major, &version.minor, &version.patch};
  for (int* part : parts) {
    if (part != &version.major) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    *part = *number;
  }
  return version;
}

std::string ServerVersion::text() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

Result<ServerVersion> parse_server_version(std::string_view answer) {
  TRY_ASSIGN(const nlohmann::json object, parse_object(answer, "the answer to /version"));
  if (const auto version = parse_git_version(text_of(object, {"gitVersion"}))) return *version;
  const std::string major_text = text_of(object, {"major"});
  const std::string minor_text = text_of(object, {"minor"});
  std::string_view major_rest = major_text;
  std::string_view minor_rest = minor_text;
  const auto major = take_number(major_rest);
  const auto minor = take_number(minor_rest);
  if (!major || !minor) return fail(ErrorCode::data_corrupt, "the answer to /version has no version");
  return ServerVersion{*major, *minor, 0};
}

Result<std::vector<std::string>> parse_served(std::string_view answer, std::string_view group) {
  const std::string what = "the answer to /apis/" + std::string(group);
  TRY_ASSIGN(const nlohmann::json object, parse_object(answer, what));
  const nlohmann::json* versions = member_of(object, {"versions"});
  if (text_of(object, {"kind"}) != "APIGroup" || versions == nullptr || !versions->is_array()) {
    return fail(ErrorCode::data_corrupt, what + " lists no versions");
  }
  const std::string preferred = text_of(object, {"preferredVersion", "version"});
  std::vector<std::string> names;
  for (const nlohmann::json& version : *versions) {
    const std::string name = text_of(version, {"version"});
    if (is_version_name(name) && names.size() < kMaxVersions) names.push_back(name);
  }
  std::stable_partition(names.begin(), names.end(), [&](const std::string& name) { return name == preferred; });
  return names;
}

Result<ServerVersion> server_version(Api& api) {
  const ApiCall call{.path = "/version"};
  TRY_ASSIGN(ApiReply reply, api.call(call));
  TRY_ASSIGN(const std::string body, body_of(std::move(reply), call));
  return parse_server_version(body);
}

Result<std::vector<std::string>> served_versions(Api& api, const std::string& group) {
  const ApiCall call{.path = "/apis/" + percent_encoded(group)};
  TRY_ASSIGN(ApiReply reply, api.call(call));
  if (reply.status == 404) return std::vector<std::string>();
  TRY_ASSIGN(const std::string body, body_of(std::move(reply), call));
  return parse_served(body, group);
}

}  // namespace neuron::kube
