#include "agent/kube/answers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;

// Counts brackets outside strings; text that is no JSON fails later, in the parser.
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

constexpr std::size_t kMaxContinue = std::size_t{8} << 10U;  // it goes into an URL
constexpr std::size_t kMaxVersion = 128;

Result<ApiObject> object_of(json value) {
  ApiObject object;
  object.object_namespace = text_of(value, {"metadata", "namespace"});
  object.name = text_of(value, {"metadata", "name"});
  object.uid = text_of(value, {"metadata", "uid"});
  object.resource_version = text_of(value, {"metadata", "resourceVersion"});
  if (object.name.empty() || object.resource_version.empty() || object.resource_version.size() > kMaxVersion) {
    return fail(ErrorCode::data_corrupt, "an object has no name or no resourceVersion");
  }
  object.json = std::move(value);
  return object;
}

// As client-go does (apimachinery: IsResourceExpired, IsGone).
WatchLine error_line(const json& status) {
  WatchLine line;
  const json* code = member_of(status, {"code"});
  const std::string reason = text_of(status, {"reason"});
  const bool is_gone = code != nullptr && code->is_number_integer() && *code == 410;
  line.kind = is_gone || reason == "Expired" || reason == "Gone" ? WatchLine::Kind::expired : WatchLine::Kind::error;
  line.words = printable(text_of(status, {"message"}), 300);
  return line;
}

// Removes and returns the digits at the beginning of `text`.
std::optional<int> take_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_int(text.substr(0, end), 0, 9999);
  text.remove_prefix(end);
  return number;
}

struct Unit {
  std::string_view suffix;
  std::int64_t factor = 1;
};
constexpr std::int64_t kKi = 1024;
constexpr std::array<Unit, 6> kBinary = {{{"Ei", kKi* kKi* kKi* kKi* kKi* kKi},  // the greatest first
                                          {"Pi", kKi* kKi* kKi* kKi* kKi},
                                          {"Ti", kKi* kKi* kKi* kKi},
                                          {"Gi", kKi* kKi* kKi},
                                          {"Mi", kKi* kKi},
                                          {"Ki", kKi}}};
constexpr std::string_view kDecimal = "kMGTPE";  // powers of 1000

std::int64_t power_of_ten(int power) {
  std::int64_t factor = 1;
  for (int i = 0; i < power; ++i) factor *= 10;
  return factor;
}

std::optional<std::int64_t> factor_of(std::string_view suffix) {
  if (suffix.empty()) return 1;
  for (const Unit& unit : kBinary) {
    if (suffix == unit.suffix) return unit.factor;
  }
  if (const std::size_t at = kDecimal.find(suffix); suffix.size() == 1 && at != std::string_view::npos) {
    return power_of_ten(3 * (static_cast<int>(at) + 1));
  }
  constexpr int kMaxPower = 18;  // "e3", "E18"
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E') || suffix[1] == ' ') return std::nullopt;
  const auto power = parse_int(suffix.substr(1), 0, kMaxPower);
  return power ? std::optional(power_of_ten(*power)) : std::nullopt;
}

}  // namespace

Result<json> parse_object(std::string_view text, std::string_view what) {
  auto value = is_shallow(text) ? json::parse(text, nullptr, false) : json();
  if (!value.is_object()) return fail(ErrorCode::data_corrupt, std::string(what) + " is not a JSON object");
  return value;
}

const json* member_of(const json& value, std::initializer_list<const char*> names) {
  const json* at = &value;
  for (const char* name : names) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string text_of(const json& value, std::initializer_list<const char*> names) {
  const json* found = member_of(value, names);
  return found != nullptr && found->is_string() ? found->get_ref<const std::string&>() : "";
}

const json& member(const json& object, std::string_view key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

const json& list_of(const json& object, std::string_view key) {
  static const json kNone = json::array();
  const json& value = member(object, key);
  return value.is_array() ? value : kNone;
}

std::string text_of(const json& object, std::string_view key, std::size_t max_bytes) {
  const json& value = member(object, key);
  if (!value.is_string()) return "";
  const auto& text = value.get_ref<const std::string&>();
  return text.size() <= max_bytes ? text : "";
}

bool is_true(const json& object, std::string_view key) {
  const json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

Result<std::optional<std::string>> label_in(std::string_view answer, const std::string& label,
                                            const std::string& where) {
  const auto object = json::parse(answer, nullptr, false);
  const json* metadata = member_of(object, {"metadata"});
  if (metadata == nullptr || !metadata->is_object()) {
    return fail(ErrorCode::data_corrupt, where + "'s answer is not an API object");
  }
  const json* value = member_of(*metadata, {"labels", label.c_str()});
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return fail(ErrorCode::data_corrupt, where + ": the label " + label + " is not a string");
  return value->get<std::string>();
}

Result<ListPage> parse_list_page(std::string_view text) {
  TRY_ASSIGN(json list, parse_object(text, "the list"));
  ListPage page;
  page.resource_version = text_of(list, {"metadata", "resourceVersion"});
  page.next = text_of(list, {"metadata", "continue"});
  if (page.resource_version.empty() || page.resource_version.size() > kMaxVersion || page.next.size() > kMaxContinue) {
    return fail(ErrorCode::data_corrupt, "the list has no resourceVersion, or an unusable continue token");
  }
  const auto items = list.find("items");
  if (items == list.end() || items->is_null()) return page;  // Go's nil
  if (!items->is_array()) return fail(ErrorCode::data_corrupt, "the list has no valid items");
  page.objects.reserve(items->size());
  for (json& item : *items) {
    TRY_ASSIGN(ApiObject object, object_of(std::move(item)));
    page.objects.push_back(std::move(object));
  }
  return page;
}

Result<WatchLine> parse_watch_line(std::string_view text) {
  TRY_ASSIGN(json event, parse_object(text, "a line of the watch"));
  const std::string type = text_of(event, {"type"});
  const auto object = event.find("object");
  if (object == event.end() || !object->is_object()) {
    return fail(ErrorCode::data_corrupt, "a line of the watch has no object");
  }
  if (type == "ERROR") return error_line(*object);
  WatchLine line;
  if (type == "BOOKMARK") {
    line.kind = WatchLine::Kind::bookmark;
    line.resource_version = text_of(*object, {"metadata", "resourceVersion"});
    if (!line.resource_version.empty() && line.resource_version.size() <= kMaxVersion) return line;
    return fail(ErrorCode::data_corrupt, "a bookmark of the watch has no resourceVersion");
  }
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") {
    return fail(ErrorCode::data_corrupt, "a line of the watch is of the unknown type " + printable(type, 60));
  }
  line.kind = type == "DELETED" ? WatchLine::Kind::remove : WatchLine::Kind::upsert;
  TRY_ASSIGN(line.object, object_of(std::move(*object)));
  line.resource_version = line.object.resource_version;
  return line;
}

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
  TRY_ASSIGN(const json object, parse_object(answer, "the answer to /version"));
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

Result<ServerVersion> server_version(Api& api) {
  const ApiCall call{.path = "/version"};
  TRY_ASSIGN(ApiReply reply, api.call(call));
  TRY_ASSIGN(const std::string body, body_of(std::move(reply), call));
  return parse_server_version(body);
}

std::optional<std::int64_t> parse_quantity(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("+-0123456789"), text.size());
  const std::string_view number = text.substr(0, digits), suffix = text.substr(digits);
  if (number.empty() || number.front() == '+') return std::nullopt;
  const auto value = parse_i64(number);
  if (!value) return std::nullopt;
  constexpr std::int64_t kMilli = 1000;
  if (suffix == "m") return *value % kMilli == 0 ? std::optional(*value / kMilli) : std::nullopt;
  const auto factor = factor_of(suffix);
  std::int64_t product = 0;
  if (!factor || __builtin_mul_overflow(*value, *factor, &product)) return std::nullopt;
  return product;
}

std::optional<std::int64_t> parse_thousandths(std::string_view text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::size_t kMostDigits = 9;  // of a fraction
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view suffix = text.substr(end);
  std::string_view fraction = text.substr(0, end);
  std::string digits(take_until(fraction, '.'));
  if (!fraction.empty() && !is_digits(fraction)) return std::nullopt;
  fraction = fraction.substr(0, kMostDigits);
  digits += fraction;
  if (digits.empty()) return std::nullopt;
  auto divisor = static_cast<long double>(power_of_ten(static_cast<int>(fraction.size())));
  long double factor = 1;
  if (suffix == "n" || suffix == "u") {
    divisor *= suffix == "u" ? 1e3L : 1e6L;
  } else if (suffix != "m") {
    const auto unit = factor_of(suffix);
    if (!unit) return std::nullopt;
    factor = 1e3L * static_cast<long double>(*unit);
  }
  const auto value = static_cast<long double>(parse_i64(digits).value_or(kMost));
  const long double scaled = std::ceil(value * factor / divisor);
  return scaled >= static_cast<long double>(kMost) ? kMost : static_cast<std::int64_t>(scaled);
}

std::string quantity_text(std::int64_t value) {
  for (const Unit& unit : kBinary) {
    if (value != 0 && value % unit.factor == 0) return std::to_string(value / unit.factor) + std::string(unit.suffix);
  }
  return std::to_string(value);
}

}  // namespace neuron::kube
