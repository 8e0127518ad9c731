#include "tools/kubectl-neuron/items.h"

#include <vector>

#include "agent/kube/answers.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using Event = json::parse_event_t;

constexpr int kMaxDepth = 64;
constexpr int kItemDepth = 2;  // of an object in the list at `items`
constexpr std::size_t kMaxContinue = std::size_t{8} << 10U;

// nlohmann's callback: says of each value, as it is read, whether it is kept. Objects of the list are used and dropped.
class Filter {
 public:
  Filter(const Keep& keep, const UseItem& use) : use_(use) { at_.push_back(&keep); }

  // `depth` is the number of open objects and lists around the value, or the key.
  bool operator()(int depth, Event event, json& value) {
    const auto place = static_cast<std::size_t>(depth);
    if (depth >= kMaxDepth) is_too_deep_ = true;
    if (is_too_deep_) return false;
    at_.resize(place + 2, nullptr);
    if (depth == kItemDepth && is_in_list_) return is_kept_item(event, value);
    const bool is_other = event == Event::object_start || (event == Event::value && !value.is_null());
    is_no_list_ = is_no_list_ || (depth == 1 && is_at_items_ && is_other);
    if (event == Event::array_start) at_[place + 1] = at_[place];
    if (event == Event::array_start && depth == 1) is_in_list_ = is_at_items_;
    if (event != Event::key) return true;
    const auto& name = value.get_ref<const std::string&>();
    if (depth == 1) is_at_items_ = name == "items";
    if (depth == 1) is_in_list_ = false;
    at_[place] = below(at_[place - 1], name);
    return at_[place] != nullptr;
  }
  [[nodiscard]] bool is_too_deep() const { return is_too_deep_; }
  [[nodiscard]] bool is_no_list() const { return is_no_list_; }  // `items` is something else

 private:
  bool is_kept_item(Event event, json& value) {
    if (event == Event::object_end) use_(value);
    return event == Event::object_start;
  }
  static const Keep* below(const Keep* keep, const std::string& name) {
    if (keep == nullptr || keep->members.empty()) return keep;
    const auto found = keep->members.find(name);
    return found == keep->members.end() ? nullptr : &found->second;
  }

  const UseItem& use_;
  std::vector<const Keep*> at_;  // by depth: what is kept of a value there; nullptr: nothing
  bool is_at_items_ = false;     // the last key of the page
  bool is_in_list_ = false;
  bool is_too_deep_ = false;
  bool is_no_list_ = false;
};

}  // namespace

Result<std::string> read_items(std::string_view page, const std::string& what, const Keep& keep, const UseItem& use) {
  Filter filter(keep, use);
  const json rest = json::parse(
      page, [&](int depth, Event event, json& value) { return filter(depth, event, value); }, false);
  if (filter.is_too_deep()) return fail(ErrorCode::data_corrupt, what + " is nested too deeply");
  if (filter.is_no_list()) return fail(ErrorCode::data_corrupt, what + " has no list of items");
  if (!rest.is_object()) return fail(ErrorCode::data_corrupt, what + " is not a JSON object");
  std::string next = kube::text_of(rest, {"metadata", "continue"});
  if (next.size() > kMaxContinue) return fail(ErrorCode::data_corrupt, what + " has an unusable continue token");
  return next;
}

}  // namespace neuron::fleet
