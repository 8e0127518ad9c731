#include "tools/kubectl-neuron/selector.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::fleet {
namespace {

struct Value {
  enum class Kind {
    failed,
    flag,
    number,
    text,
    quantity,
    list,
    device,
    attributes,
    capacities,
    domain,
    absent,
    present
  };
  Kind kind = Kind::failed;
  bool flag = false;
  std::int64_t number = 0;   // also of a quantity
  std::string text;          // also a domain of attributes or capacities
  std::vector<Value> list;   // also the value of `present`
  bool of_capacity = false;  // of a domain
};

Value of_flag(bool flag) {
  Value value;
  value.kind = Value::Kind::flag;
  value.flag = flag;
  return value;
}

Value of_number(std::int64_t number, Value::Kind kind = Value::Kind::number) {
  Value value;
  value.kind = kind;
  value.number = number;
  return value;
}

Value of_text(std::string text) {
  Value value;
  value.kind = Value::Kind::text;
  value.text = std::move(text);
  return value;
}

Value of_kind(Value::Kind kind) {
  Value value;
  value.kind = kind;
  return value;
}

bool is_same(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Value::Kind::flag) return a.flag == b.flag;
  if (a.kind == Value::Kind::text) return a.text == b.text;
  return a.number == b.number;
}

bool is_plain(const Value& value) {
  return value.kind == Value::Kind::flag || value.kind == Value::Kind::number || value.kind == Value::Kind::text ||
         value.kind == Value::Kind::quantity;
}

// Both sides of && and || are evaluated: a side that decides makes an error of the other one void, as in CEL.
Value both(const Value& a, const Value& b, bool decides) {
  const auto is = [&](const Value& one) { return one.kind == Value::Kind::flag && one.flag == decides; };
  if (is(a) || is(b)) return of_flag(decides);
  if (a.kind != Value::Kind::flag || b.kind != Value::Kind::flag) return {};
  return of_flag(!decides);
}

// Evaluates while it parses. A failed value stands for an error of CEL and for what is not understood.
class Evaluator {
 public:
  Evaluator(std::string_view text, const std::string& driver, const SliceDevice& device)
      : rest_(text), driver_(driver), device_(device) {}

  std::optional<bool> run() {
    const Value value = disjunction();
    skip();
    if (broken_ || !rest_.empty() || value.kind != Value::Kind::flag) return std::nullopt;
    return value.flag;
  }

 private:
  static constexpr int kDeepest = 40;

  void skip() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) rest_.remove_prefix(1);
  }

  bool take(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    const bool is_word = std::isalpha(static_cast<unsigned char>(token.front())) != 0;
    if (is_word && rest_.size() > token.size() && is_name(rest_[token.size()])) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  Value broken() {
    broken_ = true;
    return {};
  }

  static bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  std::string name() {
    skip();
    std::size_t size = 0;
    while (size < rest_.size() && is_name(rest_[size])) ++size;
    std::string found(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return found;
  }

  Value disjunction() {
    if (++depth_ > kDeepest) return broken();
    Value left = conjunction();
    while (!broken_ && take("||")) left = both(left, conjunction(), true);
    --depth_;
    return left;
  }

  Value conjunction() {
    Value left = relation();
    while (!broken_ && take("&&")) left = both(left, relation(), false);
    return left;
  }

  Value relation() {
    const Value left = unary();
    if (broken_) return {};
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (take(op)) return compared(left, op, unary());
    }
    if (take("in")) return within(left, unary());
    return left;
  }

  static Value compared(const Value& a, std::string_view op, const Value& b) {
    if (!is_plain(a) || !is_plain(b)) return {};
    if (op == "==" || op == "!=") return of_flag(is_same(a, b) == (op == "=="));
    if (a.kind != b.kind || a.kind == Value::Kind::flag || a.kind == Value::Kind::quantity) return {};
    const bool is_text = a.kind == Value::Kind::text;
    const auto order = is_text ? a.text <=> b.text : a.number <=> b.number;
    if (op == "<") return of_flag(order < 0);
    if (op == "<=") return of_flag(order <= 0);
    if (op == ">") return of_flag(order > 0);
    return of_flag(order >= 0);
  }

  Value within(const Value& one, const Value& list) const {
    if (list.kind == Value::Kind::domain && one.kind == Value::Kind::text) {
      return of_flag(member(list, one.text).kind != Value::Kind::failed);
    }
    if (list.kind != Value::Kind::list || !is_plain(one)) return {};
    return of_flag(std::ranges::any_of(list.list, [&](const Value& other) { return is_same(one, other); }));
  }

  Value unary() {
    if (++depth_ > kDeepest) return broken();
    Value value;
    skip();
    if (rest_.starts_with("!") && !rest_.starts_with("!=")) {
      rest_.remove_prefix(1);
      value = unary();
      value = value.kind == Value::Kind::flag ? of_flag(!value.flag) : Value{};
    } else {
      value = with_members(primary());
    }
    --depth_;
    return value;
  }

  Value primary() {
    skip();
    if (rest_.empty()) return broken();
    const char first = rest_.front();
    if (first == '(') {
      rest_.remove_prefix(1);
      Value value = disjunction();
      return take(")") ? value : broken();
    }
    if (first == '\'' || first == '"') return literal();
    if (first == '[') return list();
    if (first == '-' || std::isdigit(static_cast<unsigned char>(first)) != 0) return digits();
    const std::string word = name();
    if (word == "true" || word == "false") return of_flag(word == "true");
    if (word == "device") return of_kind(Value::Kind::device);
    if (word == "quantity") return quantity();
    return broken();
  }

  Value literal() {
    const char quote = rest_.front();
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return broken();
    const std::string_view text = rest_.substr(1, end - 1);
    const bool is_odd =
        text.find('\\') != std::string_view::npos || (text.empty() && rest_.substr(2).starts_with(quote));
    if (is_odd) return broken();
    rest_.remove_prefix(end + 1);
    return of_text(std::string(text));
  }

  Value digits() {
    std::size_t size = rest_.front() == '-' ? 1 : 0;
    while (size < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[size])) != 0) ++size;
    const auto number = parse_i64(rest_.substr(0, size));
    if (!number) return broken();
    rest_.remove_prefix(size);
    if (!rest_.empty() && (is_name(rest_.front()) || rest_.front() == '.')) return broken();
    return of_number(*number);
  }

  Value list() {
    rest_.remove_prefix(1);
    Value all = of_kind(Value::Kind::list);
    while (!broken_ && !take("]")) {
      all.list.push_back(disjunction());
      if (!is_plain(all.list.back())) return broken();
      skip();
      if (!take(",") && !rest_.starts_with("]")) return broken();
    }
    return all;
  }

  std::optional<Value> argument() {
    if (!take("(")) return std::nullopt;
    Value value = disjunction();
    if (broken_ || !take(")")) return std::nullopt;
    return value;
  }

  Value quantity() {
    const auto text = argument();
    if (!text || text->kind != Value::Kind::text) return broken();
    const auto number = kube::parse_quantity(text->text);
    return number ? of_number(*number, Value::Kind::quantity) : broken();
  }

  Value with_members(Value value) {
    while (!broken_) {
      if (take("[")) {
        const Value key = disjunction();
        if (broken_ || !take("]") || key.kind != Value::Kind::text) return broken();
        value = indexed(value, key.text);
      } else if (take(".?")) {
        value = optional_of(member(value, name()));
      } else if (take(".")) {
        const std::string word = name();
        skip();
        value = rest_.starts_with("(") ? called(value, word) : member(value, word);
      } else {
        return value;
      }
    }
    return {};
  }

  static Value optional_of(Value value) {
    if (value.kind == Value::Kind::failed) return of_kind(Value::Kind::absent);
    Value found = of_kind(Value::Kind::present);
    found.list.push_back(std::move(value));
    return found;
  }

  Value indexed(const Value& value, const std::string& key) {
    const bool of_capacity = value.kind == Value::Kind::capacities;
    if (value.kind == Value::Kind::domain) return member(value, key);
    if (value.kind != Value::Kind::attributes && !of_capacity) return broken();
    Value domain = of_kind(Value::Kind::domain);
    domain.text = key;
    domain.of_capacity = of_capacity;
    return domain;
  }

  Value member(const Value& value, const std::string& word) const {
    if (value.kind == Value::Kind::device) {
      if (word == "driver") return of_text(driver_);
      if (word == "attributes") return of_kind(Value::Kind::attributes);
      if (word == "capacity") return of_kind(Value::Kind::capacities);
      if (word == "allowMultipleAllocations") return of_flag(device_.multiple);
      return {};
    }
    if (value.kind != Value::Kind::domain) return {};
    const std::string whole = value.text == driver_ ? word : value.text + "/" + word;
    if (value.of_capacity) {
      const auto found = device_.capacity.find(whole);
      const auto number = found == device_.capacity.end() ? std::nullopt : kube::parse_quantity(found->second);
      return number ? of_number(*number, Value::Kind::quantity) : Value{};
    }
    const auto found = device_.attributes.find(whole);
    if (found == device_.attributes.end() || word == "draDriverVersion") return {};  // CEL has versions for the latter
    if (found->second.number) return of_number(*found->second.number);
    if (found->second.flag) return of_flag(*found->second.flag);
    return found->second.text ? of_text(*found->second.text) : Value{};
  }

  Value called(const Value& value, const std::string& word) {
    if (word == "hasValue" && take("(") && take(")")) {
      const bool is_optional = value.kind == Value::Kind::absent || value.kind == Value::Kind::present;
      return is_optional ? of_flag(value.kind == Value::Kind::present) : broken();
    }
    const auto other = argument();
    if (!other) return broken();
    if (word == "orValue" && value.kind == Value::Kind::absent) return *other;
    if (word == "orValue" && value.kind == Value::Kind::present) return value.list.front();
    if (value.kind == Value::Kind::failed || other->kind == Value::Kind::failed) return {};
    if (value.kind == Value::Kind::text && other->kind == Value::Kind::text) {
      if (word == "startsWith") return of_flag(value.text.starts_with(other->text));
      if (word == "endsWith") return of_flag(value.text.ends_with(other->text));
      if (word == "contains") return of_flag(value.text.find(other->text) != std::string::npos);
    }
    if (value.kind == Value::Kind::quantity && other->kind == Value::Kind::quantity) {
      if (word == "isGreaterThan") return of_flag(value.number > other->number);
      if (word == "isLessThan") return of_flag(value.number < other->number);
      if (word == "compareTo") return of_number((value.number > other->number) - (value.number < other->number));
    }
    return broken();
  }

  std::string_view rest_;
  const std::string& driver_;
  const SliceDevice& device_;
  int depth_ = 0;
  bool broken_ = false;  // something is not understood
};

// The parts between && outside of brackets and quotes; the whole where there is a || or a conditional outside of them.
std::vector<std::string_view> conjuncts(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (depth == 0 && (text.substr(at).starts_with("||") || (c == '?' && (at == 0 || text[at - 1] != '.')))) {
      return {trim(text)};
    } else if (depth == 0 && text.substr(at).starts_with("&&")) {
      parts.push_back(trim(text.substr(begin, at - begin)));
      begin = ++at + 1;
    }
  }
  parts.push_back(trim(text.substr(begin)));
  return parts;
}

}  // namespace

SelectorAnswer selects(const std::string& expression, const std::string& driver, const SliceDevice& device) {
  // Escapes and comments would end a text or the expression elsewhere.
  const bool is_odd = expression.find('\\') != std::string::npos || expression.find("//") != std::string::npos;
  if (is_odd) return {Match::unknown, expression};
  SelectorAnswer answer{Match::yes, ""};
  for (const std::string_view part : conjuncts(expression)) {
    const auto value = Evaluator(part, driver, device).run();
    if (value && !*value) return {Match::no, std::string(part)};
    if (!value && answer.match == Match::yes) answer = {Match::unknown, std::string(part)};
  }
  return answer;
}

}  // namespace neuron::fleet
