#include "agent/kube/json_text.h"

#include <nlohmann/json.hpp>

namespace neuron::kube {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Of brackets outside texts; what is no JSON may have any, and does not parse.
bool is_shallow(std::string_view text) {
  std::size_t depth = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '"') is_text = !is_text;
    if (is_text && letter == '\\') ++i;
    if (is_text) continue;
    if ((letter == '{' || letter == '[') && ++depth > kMaxDepth) return false;
    if ((letter == '}' || letter == ']') && depth > 0) --depth;
  }
  return true;
}

}  // namespace

Result<nlohmann::json> parse_object(std::string_view text, std::string_view what) {
  auto value = is_shallow(text) ? nlohmann::json::parse(text, nullptr, false) : nlohmann::json();
  if (!value.is_object()) return fail(ErrorCode::data_corrupt, std::string(what) + " is not a JSON object");
  return value;
}

const nlohmann::json* member_of(const nlohmann::json& value, std::initializer_list<const char*> names) {
  const nlohmann::json* at = &value;
  for (const char* name : names) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string text_of(const nlohmann::json& value, std::initializer_list<const char*> names) {
  const nlohmann::json* found = member_of(value, names);
  return found != nullptr && found->is_string() ? found->get_ref<const std::string&>() : "";
}

}  // namespace neuron::kube
