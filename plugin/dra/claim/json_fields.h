#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

// Reading of foreign JSON whose fields may be missing or of another type. For .cpp files of this folder.
namespace neuron::plugin::dra {

inline constexpr std::size_t kMaxObjectBytes = std::size_t{2} << 20U;  // above what etcd keeps of one object

// The member, or a null when it is missing or `object` is no object. Lives as long as `object`.
[[nodiscard]] inline const nlohmann::json& member(const nlohmann::json& object, std::string_view key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

// The text of a member; "" when it is missing, no text, or has more than `max_bytes`, which no API object has there.
[[nodiscard]] inline std::string text_of(const nlohmann::json& object, std::string_view key,
                                         std::size_t max_bytes = 253) {
  const nlohmann::json& value = member(object, key);
  if (!value.is_string()) return "";
  const auto& text = value.get_ref<const std::string&>();
  return text.size() <= max_bytes ? text : "";
}

[[nodiscard]] inline bool is_true(const nlohmann::json& object, std::string_view key) {
  const nlohmann::json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

// The member as a list; an empty one when it is none.
[[nodiscard]] inline const nlohmann::json& list_of(const nlohmann::json& object, std::string_view key) {
  static const nlohmann::json kNone = nlohmann::json::array();
  const nlohmann::json& value = member(object, key);
  return value.is_array() ? value : kNone;
}

}  // namespace neuron::plugin::dra
