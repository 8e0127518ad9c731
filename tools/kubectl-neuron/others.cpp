#include "tools/kubectl-neuron/others.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "agent/model/resource.h"

namespace neuron::fleet {
namespace {

using kube::list_of;
using kube::member;
using nlohmann::json;

constexpr std::int64_t kMost = std::int64_t{1} << 60U;  // sums of two stay in range
constexpr std::size_t kMostNames = 64;                  // of one object
constexpr std::size_t kLongestName = 317;               // of a resource
constexpr const char* kCpu = "cpu";
constexpr const char* kPods = "pods";
constexpr std::int64_t kThousand = 1000;

// "500m", "2", "1.5": thousandths, rounded down.
std::optional<std::int64_t> thousandths(std::string_view text) {
  if (text.ends_with("m")) return parse_i64(text.substr(0, text.size() - 1));
  const std::size_t point = text.find('.');
  const auto whole = kube::parse_quantity(text.substr(0, point));
  if (!whole || *whole < 0 || *whole > kMost / kThousand) return std::nullopt;
  if (point == std::string_view::npos) return *whole * kThousand;
  std::string digits(text.substr(point + 1, 3));
  if (!is_digits(digits)) return std::nullopt;
  digits.resize(3, '0');
  return *whole * kThousand + parse_i64(digits).value_or(0);
}

std::optional<std::int64_t> amount_of(const std::string& name, const json& value) {
  std::optional<std::int64_t> amount;
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (number >= 0 && number <= kMost / kThousand) amount = name == kCpu ? number * kThousand : number;
  } else if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    amount = name == kCpu ? thousandths(text) : kube::parse_quantity(text);
  }
  if (!amount || *amount < 0) return std::nullopt;
  return std::min(*amount, kMost);
}

void add(Amounts& sum, const Amounts& more) {
  for (const auto& [name, amount] : more) sum[name] = std::min(sum[name] + amount, kMost);
}

void raise_to(Amounts& amounts, const Amounts& others) {
  for (const auto& [name, amount] : others) amounts[name] = std::max(amounts[name], amount);
}

Amounts asked_by(const json& container, const std::set<std::string>& more) {
  const json& resources = member(container, "resources");
  Amounts asked = others_of(member(resources, "limits"), more);
  for (const auto& [name, amount] : others_of(member(resources, "requests"), more)) asked[name] = amount;
  return asked;
}

std::string words_of_amount(const std::string& name, std::int64_t amount) {
  if (name != kCpu) return kube::quantity_text(amount);
  return amount % kThousand == 0 ? std::to_string(amount / kThousand) : std::to_string(amount) + "m";
}

// Names with a domain that no node has of itself.
bool is_extended(const std::string& name) {
  return name.find('/') != std::string::npos;
}

}  // namespace

Amounts others_of(const json& amounts, const std::set<std::string>& more) {
  Amounts all;
  if (!amounts.is_object()) return all;
  for (const auto& [name, value] : amounts.items()) {
    if (all.size() >= kMostNames || name.size() > kLongestName) continue;
    if (model::parse_resource(name) || more.contains(name)) continue;
    if (const auto amount = amount_of(name, value)) all[name] = *amount;
  }
  return all;
}

Amounts others_of_pod(const json& pod, const std::set<std::string>& more) {
  const json& spec = member(pod, "spec");
  const std::string phase = kube::text_of(member(pod, "status"), "phase");
  if (phase == "Succeeded" || phase == "Failed") return {};
  Amounts running, sidecars, most;
  for (const json& one : list_of(spec, "containers")) add(running, asked_by(one, more));
  for (const json& one : list_of(spec, "initContainers")) {
    const Amounts own = asked_by(one, more);
    Amounts now = sidecars;
    add(now, own);
    raise_to(most, now);
    if (kube::text_of(one, "restartPolicy") != "Always") continue;
    sidecars = std::move(now);
    add(running, own);
  }
  raise_to(running, most);
  std::erase_if(running, [](const auto& entry) { return entry.second == 0; });
  running[kPods] = 1;
  return running;
}

void take_others(const Pod& pod, Node& node) {
  for (const auto& [name, amount] : pod.others) {
    const auto found = node.others.find(name);
    if (found != node.others.end()) found->second = std::max(found->second - amount, -kMost);
  }
}

void give_back_others(const Pod& pod, Node& node) {
  for (const auto& [name, amount] : pod.others) {
    const auto found = node.others.find(name);
    if (found != node.others.end()) found->second = std::min(found->second + amount, kMost);
  }
}

void settle_others(Fleet& fleet) {
  for (Pod& pod : fleet.pods) {
    const auto node = std::ranges::lower_bound(fleet.nodes, pod.node, {}, &Node::name);
    if (!pod.node.empty() && node != fleet.nodes.end() && node->name == pod.node) take_others(pod, *node);
    if (!pod.node.empty() && !asks_for_hardware(pod)) pod.others.clear();
  }
}

std::vector<Obstacle> other_obstacles(const Pod& pod, const Node& node) {
  std::vector<Obstacle> all;
  for (const auto& [name, asked] : pod.others) {
    const auto free = node.others.find(name);
    if (free == node.others.end()) {
      // A node without any of these is one whose status was not read.
      if (is_extended(name) && !node.others.empty()) all.push_back(obstacle(Obstacle::Kind::no_resource, name));
    } else if (free->second < asked) {
      all.push_back(obstacle(Obstacle::Kind::other_resource, name, words_of_amount(name, asked)));
    }
  }
  return all;
}

}  // namespace neuron::fleet
