#include "test/unit/render/json_schema.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

#include "test/fakes/paths.h"

namespace neuron::test {
namespace {

using nlohmann::json;

class Validator {
 public:
  explicit Validator(const json& root) : root_(root) {}

  std::string check(const json& schema, const json& value, const std::string& path) const {
    for (const auto& [keyword, rule] : schema.items()) {
      const std::string found = check_keyword(keyword, rule, schema, value, path);
      if (!found.empty()) return found;
    }
    return "";
  }

 private:
  static std::string complain(const std::string& path, const std::string& what, const json& value) {
    return (path.empty() ? "/" : path) + ": " + what + ": " + value.dump().substr(0, 80);
  }

  static bool has_type(const json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    return type == value.type_name();
  }

  static bool has_one_type(const json& value, const json& types) {
    if (types.is_string()) return has_type(value, types.get<std::string>());
    return std::any_of(types.begin(), types.end(), [&](const json& type) { return has_type(value, type); });
  }

  std::string check_properties(const json& rule, const json& schema, const json& value, const std::string& path) const {
    if (!value.is_object()) return "";
    for (const auto& [name, member] : value.items()) {
      if (rule.contains(name)) {
        const std::string found = check(rule[name], member, path + '/' + name);
        if (!found.empty()) return found;
      } else if (schema.value("additionalProperties", true) == false) {
        return complain(path, "unknown key " + name, value);
      }
    }
    return "";
  }

  std::string check_items(const json& rule, const json& value, const std::string& path) const {
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      const std::string found = check(rule, value[i], path + '/' + std::to_string(i));
      if (!found.empty()) return found;
    }
    return "";
  }

  std::string check_keyword(const std::string& keyword, const json& rule, const json& schema, const json& value,
                            const std::string& path) const {
    static const std::set<std::string> kSilent = {"$schema", "title", "description", "additionalProperties", "$defs"};
    if (kSilent.contains(keyword)) return "";
    if (keyword == "properties") return check_properties(rule, schema, value, path);
    if (keyword == "items") return check_items(rule, value, path);
    if (keyword == "$ref") return check(root_.at(json::json_pointer(rule.get<std::string>().substr(1))), value, path);
    return holds(keyword, rule, value, path) ? "" : complain(path, "breaks " + keyword + ' ' + rule.dump(), value);
  }

  bool holds(const std::string& keyword, const json& rule, const json& value, const std::string& path) const {
    if (keyword == "type") return has_one_type(value, rule);
    if (keyword == "const") return value == rule;
    if (keyword == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
    if (keyword == "minimum") return !value.is_number() || value >= rule;
    if (keyword == "pattern") {
      return !value.is_string() || std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>()));
    }
    if (keyword == "required") {
      return std::all_of(rule.begin(), rule.end(),
                         [&](const json& name) { return value.contains(name.get<std::string>()); });
    }
    if (keyword == "anyOf") {
      return std::any_of(rule.begin(), rule.end(), [&](const json& one) { return check(one, value, path).empty(); });
    }
    return false;
  }

  const json& root_;
};

}  // namespace

std::string schema_violation(const json& schema, const json& document) {
  return Validator(schema).check(schema, document, "");
}

std::string schema_file_violation(const std::string& name, const std::string& text) {
  std::ifstream file(fakes::source_dir() + "/docs/schema/" + name + ".json");
  const auto document = parse_strictly(text);
  return document ? schema_violation(json::parse(file), *document) : "no JSON: " + text;
}

std::optional<json> parse_strictly(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  bool repeated = false;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) repeated = true;
    return true;
  };
  json document = json::parse(text, watch, false);
  if (document.is_discarded() || repeated) return std::nullopt;
  return document;
}

}  // namespace neuron::test
