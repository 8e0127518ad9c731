#include "agent/kube/answers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::kube {
namespace {

using nlohmann::json;

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

constexpr int kThousandth = -3;
constexpr int kMaxPower = 1000;  // of "e1000": above what any number here can hold

// A quantity as written: digits * 10^power * factor. Passive data.
struct Amount {
  bool is_negative = false;
  std::string digits;  // without leading zeros; "" = 0
  int power = 0;
  std::int64_t factor = 1;  // of a binary suffix
};

// True when `suffix` is one, which then counts in `amount`.
bool add_suffix(std::string_view suffix, Amount& amount) {
  constexpr std::string_view kSmall = "num";  // powers of a thousandth, the smallest first
  if (suffix.empty()) return true;
  for (const Unit& unit : kBinary) {
    if (suffix != unit.suffix) continue;
    amount.factor = unit.factor;
    return true;
  }
  if (suffix.size() == 1) {
    const std::size_t great = kDecimal.find(suffix), small = kSmall.find(suffix);
    if (great != std::string_view::npos) amount.power += 3 * (static_cast<int>(great) + 1);
    if (small != std::string_view::npos) amount.power += 3 * static_cast<int>(small) - 9;
    return great != std::string_view::npos || small != std::string_view::npos;
  }
  if (suffix[0] != 'e' && suffix[0] != 'E') return false;
  suffix.remove_prefix(1);
  const bool is_signed = suffix[0] == '-' || suffix[0] == '+';
  const auto power = is_digits(suffix.substr(is_signed ? 1 : 0))
                         ? parse_int(suffix.substr(is_signed ? 1 : 0), 0, kMaxPower)
                         : std::nullopt;
  if (power) amount.power += suffix[0] == '-' ? -*power : *power;
  return power.has_value();
}

std::optional<Amount> amount_of(std::string_view text) {
  Amount amount;
  amount.is_negative = text.starts_with('-');
  if (amount.is_negative || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view fraction = text.substr(0, end);
  amount.digits = take_until(fraction, '.');
  amount.digits += fraction;
  if (!is_digits(amount.digits)) return std::nullopt;
  amount.power = -static_cast<int>(std::min(fraction.size(), std::size_t{kMaxPower}));
  amount.digits.resize(amount.digits.size() - fraction.size() + static_cast<std::size_t>(-amount.power));
  amount.digits.erase(0, amount.digits.find_first_not_of('0'));
  if (!add_suffix(text.substr(end), amount)) return std::nullopt;
  return amount;
}

__extension__ using Wide = unsigned __int128;

// `amount` in units of 10^power.
struct Scaled {
  std::int64_t whole = 0;  // toward zero; of what is more than fits the largest number, or its negative
  bool is_exact = true;    // nothing was cut off
};

Scaled scaled(const Amount& amount, int power) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::size_t kExactDigits = 19;  // times 2^60 they fit into 128 bits
  std::string_view digits = amount.digits;
  int left = amount.power - power;
  bool is_exact = true;
  if (digits.size() > kExactDigits) {
    is_exact = digits.find_first_not_of('0', kExactDigits) == std::string_view::npos;
    left += static_cast<int>(std::min(digits.size() - kExactDigits, std::size_t{2} * kMaxPower));
    digits = digits.substr(0, kExactDigits);
  }
  Wide value = 0;
  for (const char digit : digits) value = value * 10 + static_cast<unsigned>(digit - '0');
  value *= static_cast<Wide>(amount.factor);
  for (; left < 0 && value != 0; ++left) {
    is_exact = is_exact && value % 10 == 0;
    value /= 10;
  }
  for (; left > 0 && value != 0 && value <= static_cast<Wide>(kMost); --left) value *= 10;
  const bool fits = value <= static_cast<Wide>(kMost);
  const std::int64_t whole = fits ? static_cast<std::int64_t>(value) : kMost;
  return {amount.is_negative ? -whole : whole, is_exact && fits};
}

}  // namespace

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
  const auto amount = amount_of(text);
  const Scaled value = amount ? scaled(*amount, 0) : Scaled{.is_exact = false};
  return value.is_exact ? std::optional(value.whole) : std::nullopt;
}

std::optional<std::int64_t> parse_thousandths(std::string_view text) {
  const auto amount = amount_of(text);
  if (!amount) return std::nullopt;
  const auto [whole, is_exact] = scaled(*amount, kThousandth);
  const bool is_most = whole == std::numeric_limits<std::int64_t>::max();
  return is_exact || amount->is_negative || is_most ? whole : whole + 1;
}

std::string quantity_text(std::int64_t value) {
  for (const Unit& unit : kBinary) {
    if (value != 0 && value % unit.factor == 0) return std::to_string(value / unit.factor) + std::string(unit.suffix);
  }
  return std::to_string(value);
}

}  // namespace neuron::kube
