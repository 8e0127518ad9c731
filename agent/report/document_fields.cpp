#include "agent/report/document_fields.h"

#include <algorithm>
#include <functional>

#include "agent/base/parse.h"

namespace neuron::report {
namespace {

using nlohmann::json;

std::optional<std::int64_t> whole_number(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  return value.get<std::int64_t>();
}

std::optional<int> number_in(const json& value, int min, int max) {
  const auto number = whole_number(value);
  return number && *number >= min && *number <= max ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

void Fields::wrong(const char* key, const std::string& expected) const {
  if (problem_.error) return;
  problem_.error =
      make_error(ErrorCode::data_corrupt, (where_.empty() ? "" : where_ + ".") + key + " is not " + expected);
}

const json* Fields::member(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const json* Fields::list(const char* key, std::size_t most) const {
  const json* value = member(key);
  if (value == nullptr) return nullptr;
  if (value->is_array() && value->size() <= most) return value;
  wrong(key, "a list of at most " + std::to_string(most));
  return nullptr;
}

std::optional<int> Fields::number(const char* key, int min, int max) const {
  const json* value = member(key);
  if (value == nullptr) return std::nullopt;
  const auto number = number_in(*value, min, max);
  if (!number) wrong(key, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return number;
}

std::optional<std::uint64_t> Fields::count(const char* key) const {
  const json* value = member(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  wrong(key, "a whole number from 0");
  return std::nullopt;
}

std::optional<bool> Fields::flag(const char* key) const {
  const json* value = member(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  wrong(key, "true or false");
  return std::nullopt;
}

std::optional<std::string> Fields::text(const char* key) const {
  const json* value = member(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string() && value->get_ref<const std::string&>().size() <= kMostTextBytes) {
    return value->get<std::string>();
  }
  wrong(key, "a text of at most " + std::to_string(kMostTextBytes) + " bytes");
  return std::nullopt;
}

std::optional<std::vector<int>> Fields::numbers(const char* key, std::size_t most, int min, int max) const {
  const json* value = list(key, most);
  if (value == nullptr) return std::nullopt;
  std::vector<int> numbers;
  for (const json& one : *value) {
    const auto number = number_in(one, min, max);
    if (!number) {
      wrong(key, "a list of whole numbers from " + std::to_string(min) + " to " + std::to_string(max));
      return std::nullopt;
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<int>> Fields::ascending(const char* key, std::size_t most, int max) const {
  auto numbers = this->numbers(key, most, 0, max);
  if (numbers && std::ranges::adjacent_find(*numbers, std::greater_equal<>()) == numbers->end()) return numbers;
  if (numbers) wrong(key, "ascending");
  return std::nullopt;
}

std::optional<std::vector<int>> Fields::cpus(const char* key) const {
  constexpr int kMostCpus = 65535;
  const auto text = this->text(key);
  if (!text) return std::nullopt;
  auto cpus = parse_int_list(*text, kMostCpus);
  if (cpus) return *std::move(cpus);
  wrong(key, "a list of CPUs");
  return std::nullopt;
}

std::optional<std::vector<std::string>> Fields::texts(const char* key, std::size_t most) const {
  const json* value = list(key, most);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const json& one : *value) {
    if (!one.is_string() || one.get_ref<const std::string&>().size() > kMostTextBytes) {
      wrong(key, "a list of texts of at most " + std::to_string(kMostTextBytes) + " bytes");
      return std::nullopt;
    }
    texts.push_back(one.get<std::string>());
  }
  return texts;
}

std::optional<Fields> Fields::object(const char* key) const {
  const json* value = member(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return Fields(*value, where_.empty() ? key : where_ + "." + key, problem_);
  wrong(key, "an object");
  return std::nullopt;
}

std::vector<Fields> Fields::objects(const char* key, std::size_t most) const {
  std::vector<Fields> all;
  const json* value = list(key, most);
  if (value == nullptr) return all;
  for (const json& one : *value) {
    if (!one.is_object()) {
      wrong(key, "a list of objects");
      return all;
    }
    const std::string place = std::string(key) + "[" + std::to_string(all.size()) + "]";
    all.emplace_back(one, where_.empty() ? place : where_ + "." + place, problem_);
  }
  return all;
}

}  // namespace neuron::report
