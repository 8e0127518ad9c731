#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

// Who owns which labels and conditions of a Node, and what server-side apply makes of it: what test/fakes/fake_api.h
// knows of metadata.managedFields. As kube-apiserver 1.36 does it, for these two kinds of fields alone.
namespace neuron::fakes {

// A label {"label", key}, or a field of a condition {"condition", type, name}, "." being the entry as such.
using Field = std::vector<std::string>;

class FieldOwners {
 public:
  using Json = nlohmann::json;

  // Of an object's managedFields.
  explicit FieldOwners(const Json& object) {
    const Json entries = object.value("/metadata/managedFields"_json_pointer, Json::array());
    for (const Json& entry : entries) {
      Owner owner{entry.value("manager", ""), entry.value("operation", ""), entry.value("subresource", "")};
      owners_[owner] = fields_of_text(entry.value("fieldsV1", Json::object()));
    }
  }

  // What differs between the two is of whoever updated it, and of nobody else.
  void updated(const std::string& manager, const std::string& subresource, const Json& before, const Json& after) {
    const std::set<Field> was = fields_of(before), is = fields_of(after);
    std::set<Field>& own = owners_[{manager, "Update", subresource}];
    for (const Field& field : is) {
      if (was.contains(field) && value_of(before, field) == value_of(after, field)) continue;
      for (auto& [owner, fields] : owners_) fields.erase(field);
      own.insert(field);
    }
    for (const Field& field : was) {
      if (is.contains(field)) continue;
      for (auto& [owner, fields] : owners_) fields.erase(field);
    }
  }

  // Makes `object` what it is after `manager` has applied `wanted`. The paths of fields that are somebody else's and
  // would change; with some, nothing has changed unless it is `forced`.
  std::vector<std::string> apply(const std::string& manager, const std::string& subresource, const Json& wanted,
                                 bool forced, Json& object) {
    const Owner self{manager, "Apply", subresource};
    const std::set<Field> said = fields_of(wanted);
    std::vector<std::string> conflicts;
    for (const Field& field : said) {
      const bool same = value_of(object, field) == value_of(wanted, field);
      for (const auto& [owner, fields] : owners_) {
        if (!same && field.back() != "." && owner != self && fields.contains(field)) {
          conflicts.push_back(path_of(field) + " by " + owner.manager);
        }
      }
    }
    if (!conflicts.empty() && !forced) return conflicts;
    const std::set<Field> before = owners_[self];
    for (const Field& field : before) {
      if (!said.contains(field) && !owned_by_others(self, field)) erase(object, field);
    }
    for (const Field& field : said) {
      if (value_of(object, field) != value_of(wanted, field)) {
        for (auto& [owner, fields] : owners_) fields.erase(field);
      }
      set(object, field, value_of(wanted, field));
    }
    owners_[self] = said;
    const std::set<Field> left = fields_of(object);
    for (auto& [owner, fields] : owners_) {
      std::erase_if(fields, [&](const Field& field) { return !left.contains(field); });
    }
    return {};
  }

  void store(Json& object) const {
    Json entries = Json::array();
    for (const auto& [owner, fields] : owners_) {
      if (fields.empty()) continue;
      Json entry{{"manager", owner.manager},
                 {"operation", owner.operation},
                 {"apiVersion", "v1"},
                 {"fieldsType", "FieldsV1"},
                 {"fieldsV1", text_of(fields)}};
      if (!owner.subresource.empty()) entry["subresource"] = owner.subresource;
      entries.push_back(std::move(entry));
    }
    object["metadata"].erase("managedFields");
    if (!entries.empty()) object["metadata"]["managedFields"] = std::move(entries);
  }

 private:
  struct Owner {
    std::string manager, operation, subresource;
    friend auto operator<=>(const Owner&, const Owner&) = default;
  };

  static std::set<Field> fields_of(const Json& object) {
    std::set<Field> fields;
    const Json labels = object.value("/metadata/labels"_json_pointer, Json::object());
    for (const auto& [key, unused] : labels.items()) {
      fields.insert({"label", key});
    }
    const Json conditions = object.value("/status/conditions"_json_pointer, Json::array());
    for (const Json& one : conditions) {
      const std::string type = one.value("type", "");
      fields.insert({"condition", type, "."});
      for (const auto& [name, unused] : one.items()) fields.insert({"condition", type, name});
    }
    return fields;
  }
  static Json* condition(Json& object, const std::string& type) {
    if (!object.contains("/status/conditions"_json_pointer)) return nullptr;
    for (Json& one : object["status"]["conditions"]) {
      if (one.value("type", "") == type) return &one;
    }
    return nullptr;
  }
  static Json value_of(Json object, const Field& field) {
    if (field[0] == "label")
      return object.value("/metadata/labels"_json_pointer, Json::object()).value(field[1], Json());
    Json* one = condition(object, field[1]);
    return one == nullptr ? Json() : field[2] == "." ? Json(true) : one->value(field[2], Json());
  }
  static void set(Json& object, const Field& field, const Json& value) {
    if (field[0] == "label") {
      object["metadata"]["labels"][field[1]] = value;
      return;
    }
    if (condition(object, field[1]) == nullptr) object["status"]["conditions"].push_back({{"type", field[1]}});
    if (field[2] != ".") (*condition(object, field[1]))[field[2]] = value;
  }
  // An entry goes with whoever made it, and all that others have in it.
  static void erase(Json& object, const Field& field) {
    if (field[0] == "label") {
      if (object["metadata"].contains("labels")) object["metadata"]["labels"].erase(field[1]);
      return;
    }
    Json* one = condition(object, field[1]);
    if (one == nullptr) return;
    if (field[2] == "type") return;
    if (field[2] != ".") {
      one->erase(field[2]);
      return;
    }
    Json& all = object["status"]["conditions"];
    all.erase(all.begin() + (one - &all[0]));
  }
  [[nodiscard]] bool owned_by_others(const Owner& self, const Field& field) const {
    for (const auto& [owner, fields] : owners_) {
      if (owner != self && fields.contains(field)) return true;
    }
    return false;
  }

  static std::string key_of(const std::string& type) { return "k:" + Json{{"type", type}}.dump(); }
  static std::string path_of(const Field& field) {
    return field[0] == "label" ? ".metadata.labels." + field[1]
                               : ".status.conditions[type=\"" + field[1] + "\"]." + field[2];
  }
  static Json text_of(const std::set<Field>& fields) {
    Json text = Json::object();
    for (const Field& field : fields) {
      if (field[0] == "label") {
        text["f:metadata"]["f:labels"]["f:" + field[1]] = Json::object();
      } else {
        const std::string name = field[2] == "." ? "." : "f:" + field[2];
        text["f:status"]["f:conditions"][key_of(field[1])][name] = Json::object();
      }
    }
    return text;
  }
  static std::set<Field> fields_of_text(const Json& text) {
    std::set<Field> fields;
    const Json labels = text.value("/f:metadata/f:labels"_json_pointer, Json::object());
    for (const auto& [key, unused] : labels.items()) {
      fields.insert({"label", key.substr(2)});
    }
    const Json conditions = text.value("/f:status/f:conditions"_json_pointer, Json::object());
    for (const auto& [key, names] : conditions.items()) {
      const std::string type = Json::parse(key.substr(2)).value("type", "");
      for (const auto& [name, unused] : names.items()) {
        fields.insert({"condition", type, name == "." ? "." : name.substr(2)});
      }
    }
    return fields;
  }

  std::map<Owner, std::set<Field>> owners_;
};

}  // namespace neuron::fakes
