// Users' files: YAML and JSON as kubectl reads them. The only user of yaml-cpp, whose events become JSON here: its
// exceptions end in this file, and the handler ends a parse by throwing one.

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxNodes = 2'000'000;                   // of a document, each use of an anchor counted
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20U;  // likewise
constexpr const char* kTooDeep = "nested more than 64 deep, as no object of Kubernetes is";

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why) {
  throw YAML::ParserException(mark, why);
}

bool is_one_of(std::string_view text, std::initializer_list<const char*> all) {
  return std::ranges::any_of(all, [&](const char* one) { return text == one; });
}

// Go's strconv with base 0: "0x1f", "0b11", "0o17" and "017".
json whole_number_of(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const bool is_signed = is_negative || text.starts_with('+');
  if (is_signed) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = lower_ascii(text.substr(1, 1))[0];
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return nullptr;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value > kMost) return is_signed ? json() : json(value);
  return is_negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

json fraction_of(std::string_view text) {
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return nullptr;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return nullptr;
  constexpr double kMost = 9e18;  // Go writes whole ones without a point
  if (value == std::floor(value) && std::abs(value) < kMost) return static_cast<std::int64_t>(value);
  return value;
}

// A scalar without quotes, as kubectl reads it: YAML 1.1 with Go's numbers (sigs.k8s.io/yaml, goyaml.v2).
json value_of(const std::string& text, const YAML::Mark& mark) {
  if (text.empty()) return nullptr;
  if (is_one_of(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  if (is_one_of(text, {".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf",
                       "-.INF"})) {
    refuse(mark, text + " is a number that JSON does not have");
  }
  if (std::string_view("+-.0123456789").find(text[0]) == std::string_view::npos) return text;
  std::string plain = text;
  if (text[0] != '.') std::erase(plain, '_');
  json number = whole_number_of(plain);
  if (number.is_null()) number = fraction_of(plain);
  return number.is_null() ? json(text) : number;
}

// What a value costs where an alias repeats it.
struct Cost {
  std::size_t nodes = 1;
  std::size_t bytes = 0;
};

// Makes a document's events JSON.
class Builder : public YAML::EventHandler {
 public:
  json take() { return std::move(result_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override { anchors_.clear(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, nullptr, {}, anchor); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(mark, "an anchor that contains itself");
    const auto& [value, cost] = found->second;
    spend(mark, cost);
    if (open_.size() + depth_of(value) > kMaxDepth) refuse(mark, kTooDeep);
    add(mark, value, cost, YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check_tag(mark, tag);
    const bool is_plain = tag != "!";
    spend(mark, {1, text.size()});
    if (is_plain && text == "<<" && wants_key() && anchor == YAML::NullAnchor) {
      open_.back().is_merge = true;
      return set_key(mark, text);
    }
    add(mark, is_plain ? value_of(text, mark) : json(text), {1, text.size()}, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, json::array());
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, json::object());
  }
  void OnMapEnd() override { end(); }

 private:
  // A list or a map that has not ended.
  struct Open {
    json value;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    Cost cost{};
    std::optional<std::string> key{};  // of a map, where the next value is its value
    bool is_merge = false;             // that key is <<
    std::set<std::string> own{};       // keys that are not merged
  };

  static std::size_t depth_of(const json& value) {
    std::size_t depth = 0;
    if (value.is_structured()) {
      for (const json& one : value) depth = std::max(depth, depth_of(one));
      ++depth;
    }
    return depth;
  }

  static void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    refuse(mark, "the tag " + printable(tag, 64) + ": remove it; quotes make a text");
  }

  [[nodiscard]] bool wants_key() const { return !open_.empty() && open_.back().value.is_object() && !open_.back().key; }

  void spend(const YAML::Mark& mark, Cost cost) {
    spent_.nodes += cost.nodes;
    spent_.bytes += cost.bytes;
    if (spent_.nodes > kMaxNodes || spent_.bytes > kMaxTextBytes) {
      refuse(mark, "more than " + std::to_string(kMaxNodes) + " values or " + std::to_string(kMaxTextBytes) +
                       " bytes, each use of an anchor counted: split the file, or write out the anchors");
    }
  }

  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, json empty) {
    check_tag(mark, tag);
    spend(mark, {});
    if (wants_key()) refuse(mark, "a key that is no text");
    if (open_.size() >= kMaxDepth) refuse(mark, kTooDeep);
    open_.push_back({std::move(empty), mark, anchor});
  }

  void end() {
    Open ended = std::move(open_.back());
    open_.pop_back();
    add(ended.mark, std::move(ended.value), ended.cost, ended.anchor);
  }

  void set_key(const YAML::Mark& mark, std::string key) {
    Open& map = open_.back();
    if (!map.own.insert(key).second) refuse(mark, "the key \"" + printable(key, 64) + "\" a second time: remove one");
    map.key = std::move(key);
  }

  void add(const YAML::Mark& mark, json value, Cost cost, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      spend(mark, cost);
      anchors_[anchor] = {value, cost};
    }
    if (open_.empty()) {
      result_ = std::move(value);
      return;
    }
    Open& owner = open_.back();
    owner.cost.nodes += cost.nodes;
    owner.cost.bytes += cost.bytes;
    if (owner.value.is_array()) return owner.value.push_back(std::move(value));
    if (!owner.key) {
      if (value.is_structured() || value.is_null()) refuse(mark, "a key that is no text");
      return set_key(mark, value.is_string() ? value.get<std::string>() : value.dump());
    }
    if (std::exchange(owner.is_merge, false)) {
      merge(mark, owner, value);
    } else {
      owner.value[*owner.key] = std::move(value);
    }
    owner.key.reset();
  }

  // Keys of the map itself win, and those of the first of several. kubectl lets a later << win: refused where they
  // differ.
  static void merge(const YAML::Mark& mark, Open& map, const json& source) {
    if (source.is_array()) {
      for (const json& one : source) {
        if (!one.is_object()) refuse(mark, "<< takes a map or a list of maps");
        merge(mark, map, one);
      }
      return;
    }
    if (!source.is_object()) refuse(mark, "<< takes a map or a list of maps");
    for (const auto& [key, value] : source.items()) {
      if (map.own.contains(key)) refuse(mark, "<< after the key \"" + printable(key, 64) + "\" of both: put << first");
      if (!map.value.contains(key)) map.value[key] = value;
    }
  }

  json result_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::pair<json, Cost>> anchors_;
  Cost spent_{0, 0};
};

// The rest of a file, from which documents are taken.
class Documents {
 public:
  Result<std::vector<json>> read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    TRY(check_text(text));
    while (!text.empty()) {
      const std::string_view before = text;
      TRY_ASSIGN(const std::string_view part, take_part(text));
      TRY(read_part(part));
      line_ = after(line_, before, text);
    }
    return std::move(all_);
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong(const std::string& why, std::size_t line) const {
    return fail(ErrorCode::invalid_argument,
                "document " + std::to_string(number_) + ", line " + std::to_string(line) + ": " + why);
  }

  static Result<void> check_text(std::string_view text) {
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
      return fail(ErrorCode::invalid_argument, "UTF-16: convert it with iconv -f UTF-16 -t UTF-8");
    }
    std::size_t line = 1;
    while (!text.empty()) {
      const std::string_view one = take_until(text, '\n');
      const auto bad = std::ranges::find_if(
          one, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') || c == 0x7F; });
      const std::string at = "line " + std::to_string(line++) + ": ";
      if (bad != one.end()) return fail(ErrorCode::invalid_argument, at + "a control character: no YAML and no JSON");
      if (!is_utf8(one)) {
        return fail(ErrorCode::invalid_argument, at + "not UTF-8: convert it with iconv -t UTF-8 -f and its encoding");
      }
    }
    return {};
  }
  // The line at which `rest` begins, the end of `text`, which begins at `line`.
  static std::size_t after(std::size_t line, std::string_view text, std::string_view rest) {
    return line + static_cast<std::size_t>(std::ranges::count(text.substr(0, text.size() - rest.size()), '\n'));
  }

  // Up to a line with ---, which is removed too.
  Result<std::string_view> take_part(std::string_view& text) {
    std::string_view rest = text;
    std::size_t line = line_;
    while (!rest.empty()) {
      const std::size_t begin = text.size() - rest.size();
      std::string_view one = take_until(rest, '\n');
      if (one.starts_with("---") &&
          (one.size() == 3 || std::string_view(" \t\r").find(one[3]) != std::string_view::npos)) {
        const std::string_view beside = trim(one.substr(3));
        if (!beside.empty() && !beside.starts_with('#')) {
          return fail(ErrorCode::invalid_argument,
                      "line " + std::to_string(line) + ": text beside ---: put it on the next line");
        }
        const std::string_view part = text.substr(0, begin > 0 ? begin - 1 : 0);
        text = rest;
        return part;
      }
      ++line;
    }
    return std::exchange(text, "");
  }

  // Without white space and comments at its beginning.
  static std::string_view skip_blank(std::string_view text) {
    while (!text.empty()) {
      const std::string_view rest = trim(text);
      text.remove_prefix(rest.empty() ? text.size() : static_cast<std::size_t>(rest.data() - text.data()));
      if (!text.starts_with('#')) break;
      take_until(text, '\n');
    }
    return text;
  }

  Result<void> read_part(std::string_view part) {
    std::string_view rest = skip_blank(part);
    std::size_t line = after(line_, part, rest);
    for (bool is_first = true; !rest.empty(); is_first = false) {
      ++number_;
      const std::string_view value = take_value(rest);
      const bool is_cut = value.empty() && (rest[0] == '{' || rest[0] == '[');
      if (!is_shallow(is_cut ? rest : value)) return wrong(kTooDeep, line);
      auto read = value.empty() ? std::optional<json>() : read_json(value);
      if (!read && is_first) return read_yaml(part, is_cut ? "its brackets do not end, is it cut short? " : "");
      if (!read) return wrong("no JSON: " + printable(trim(rest.substr(0, 40))), line);
      if (!problem_.empty()) return wrong(problem_, line);
      TRY(keep(*std::move(read), line));
      const std::string_view before = std::exchange(rest, skip_blank(rest.substr(value.size())));
      line = after(line, before, rest);
      if (rest.empty() || rest[0] == '{') continue;
      return wrong(
          "text after the object: " + printable(trim(rest.substr(0, 40))) + "; separate documents by a line with ---",
          line);
    }
    return {};
  }

  // The JSON value at the beginning of `text`, with its brackets; "" when none begins or ends there.
  static std::string_view take_value(std::string_view text) {
    std::size_t depth = 0;
    bool is_text = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char letter = text[i];
      if (letter == '"') is_text = !is_text;
      if (is_text && letter == '\\') ++i;
      if (!is_text && (letter == '{' || letter == '[')) ++depth;
      if (!is_text && (letter == '}' || letter == ']') && depth > 0 && --depth == 0) return text.substr(0, i + 1);
      if (depth == 0) break;
    }
    return "";
  }

  // nullopt: no JSON. What is wrong with JSON goes to `problem_`.
  std::optional<json> read_json(std::string_view text) {
    std::vector<std::set<std::string>> keys;
    const auto watch = [&](int /*depth*/, json::parse_event_t event, json& key) {
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key && !keys.back().insert(key.get<std::string>()).second) {
        problem_ = "the key " + printable(key.dump(), 64) + " a second time in one object: remove one";
      }
      return true;
    };
    json value = json::parse(text, watch, false);
    return value.is_discarded() ? std::nullopt : std::optional(std::move(value));
  }

  Result<void> read_yaml(std::string_view part, const std::string& hint) {
    try {
      std::istringstream stream{std::string(part)};
      YAML::Parser parser(stream);
      for (Builder builder; parser.HandleNextDocument(builder); ++number_) TRY(keep(builder.take(), line_));
      --number_;
    } catch (const YAML::Exception& error) {
      return wrong(hint + printable(error.msg, 300), line_ + static_cast<std::size_t>(std::max(error.mark.line, 0)));
    }
    return {};
  }

  Result<void> keep(json value, std::size_t line) {
    if (value.is_null()) return {};
    if (!value.is_object()) {
      return wrong(value.is_array() ? "a list, where an object is due: make it the items of kind: List"
                                    : "no object with kind and metadata: " + printable(value.dump(), 40),
                   line);
    }
    all_.push_back(std::move(value));
    return {};
  }

  std::vector<json> all_;
  std::size_t number_ = 0, line_ = 1;  // of the document that is read, from 1; at which the part begins
  std::string problem_;
};

}  // namespace

Result<std::vector<json>> read_documents(std::string_view text) {
  return Documents().read(text);
}

}  // namespace neuron::kube
