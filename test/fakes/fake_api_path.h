#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

// What test/fakes/fake_api.h makes of paths and queries.
namespace neuron::fakes {

inline std::string percent_decoded(std::string_view text) {
  const auto digit = [](char letter) { return std::string_view("0123456789ABCDEF").find(letter & ~0x20); };
  const auto value = [&](char letter) {
    return letter >= '0' && letter <= '9' ? static_cast<std::size_t>(letter - '0') : digit(letter);
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && value(text[i + 1]) < 16 && value(text[i + 2]) < 16) {
      out += static_cast<char>(value(text[i + 1]) * 16 + value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

inline std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return parts;
}

inline std::map<std::string, std::string> query_of(std::string_view query) {
  std::map<std::string, std::string> values;
  for (const std::string& part : parts_of(query, '&')) {
    const std::size_t equals = part.find('=');
    values[percent_decoded(part.substr(0, equals))] =
        equals == std::string::npos ? "" : percent_decoded(part.substr(equals + 1));
  }
  return values;
}

// "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c/status" in parts; what is not there is "".
struct ApiPath {
  std::string group, version, scope, resource, name, subresource;  // scope: the namespace

  [[nodiscard]] std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  [[nodiscard]] std::string kind() const {
    static const std::map<std::string, std::string> kinds{{"resourceslices", "ResourceSlice"},
                                                          {"resourceclaims", "ResourceClaim"},
                                                          {"deviceclasses", "DeviceClass"},
                                                          {"nodes", "Node"},
                                                          {"pods", "Pod"},
                                                          {"events", "Event"}};
    const auto known = kinds.find(resource);
    return known != kinds.end() ? known->second : resource;
  }
  [[nodiscard]] bool has_status() const {
    return resource == "resourceclaims" || resource == "nodes" || resource == "pods";
  }
  // Versions of one object share a key; a list of a namespace's objects begins with "group/resource/scope/".
  [[nodiscard]] std::string list_key() const {
    return group + "/" + resource + "/" + (scope.empty() ? "" : scope + "/");
  }
  [[nodiscard]] std::string key() const { return group + "/" + resource + "/" + scope + "/" + name; }
};

inline ApiPath api_path(const std::string& text) {
  std::vector<std::string> parts = parts_of(text, '/');
  for (std::string& part : parts) part = percent_decoded(part);
  parts.resize(std::max<std::size_t>(parts.size(), 9));
  ApiPath path;
  std::size_t at = 1;
  if (parts[0] == "apis") path.group = parts[at++];
  path.version = parts[at++];
  if (parts[at] == "namespaces" && !parts[at + 2].empty()) {
    path.scope = parts[at + 1];
    at += 2;
  }
  path.resource = parts[at];
  path.name = parts[at + 1];
  path.subresource = parts[at + 2];
  return path;
}

// A field selector as servers take it: terms a=b, a==b or a!=b joined by commas. False for a field that none has.
class FieldSelector {
 public:
  explicit FieldSelector(const std::string& text) {
    for (const std::string& part : parts_of(text, ',')) {
      const std::size_t equals = part.find('=');
      const bool is_not = equals != std::string::npos && equals > 0 && part[equals - 1] == '!';
      const std::string field = part.substr(0, is_not ? equals - 1 : equals);
      if (equals == std::string::npos || !pointers().contains(field)) {
        unknown_ = "field label not supported: " + field;
        continue;
      }
      terms_.push_back({pointers().at(field), part.substr(part.find_first_not_of('=', equals)), is_not});
    }
  }
  [[nodiscard]] const std::string& unknown() const { return unknown_; }  // "": all fields are known
  [[nodiscard]] bool matches(const nlohmann::json& object) const {
    if (object.is_null()) return false;
    for (const Term& term : terms_) {
      const auto pointer = nlohmann::json::json_pointer(term.pointer);
      const std::string value = object.contains(pointer) ? object[pointer].get<std::string>() : "";
      if ((value == term.value) == term.is_not) return false;
    }
    return true;
  }

 private:
  struct Term {
    std::string pointer, value;
    bool is_not;
  };
  static const std::map<std::string, std::string>& pointers() {
    static const std::map<std::string, std::string> known{{"metadata.name", "/metadata/name"},
                                                          {"metadata.namespace", "/metadata/namespace"},
                                                          {"spec.driver", "/spec/driver"},
                                                          {"spec.nodeName", "/spec/nodeName"}};
    return known;
  }
  std::vector<Term> terms_;
  std::string unknown_;
};

}  // namespace neuron::fakes
