#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "agent/model/resource.h"
#include "agent/report/node_report.h"
#include "tools/kubectl-neuron/agent_pod.h"
#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/fit.h"
#include "tools/kubectl-neuron/fleet.h"
#include "tools/kubectl-neuron/items.h"
#include "tools/kubectl-neuron/parse.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

void lose(Lost& lost, std::string name) {
  if (lost.count++ < Lost::kKept) lost.first.push_back(std::move(name));
}

// "a, b, c and 4 more".
std::string words_of(const Lost& lost) {
  constexpr std::size_t kNamed = Lost::kKept - 1;
  if (lost.count <= Lost::kKept) return some_of(lost.first, kNamed);
  std::string words;
  for (std::size_t i = 0; i < kNamed; ++i) words += (i == 0 ? "" : ", ") + lost.first[i];
  return words + " and " + std::to_string(lost.count - kNamed) + " more";
}

// Everything that is listed has a name; what has none is no object.
bool has_name(const json& item) {
  return !kube::text_of(kube::member(item, "metadata"), "name").empty();
}

class Maker {
 public:
  explicit Maker(Documents& documents) : documents_(documents) {}

  Fleet run() {
    fleet_.read_at = documents_.read_at;
    fleet_.default_namespace = documents_.default_namespace;
    fleet_.unknown = documents_.unknown;
    fleet_.pods_partial = documents_.partial.contains(std::string(plural_of(Kind::pods)));
    fleet_.claims_partial = documents_.partial.contains(std::string(plural_of(Kind::claims)));
    fleet_.classes = objects(Kind::device_classes, class_of);
    for (const DeviceClass& one : fleet_.classes) {
      if (!one.extended_resource.empty()) resources_.insert(one.extended_resource);
    }
    fleet_.nodes = objects(Kind::nodes, [&](const json& object) { return node_of(object, resources_); });
    fleet_.pods = objects(Kind::pods, [&](const json& object) { return pod_of(object, resources_); });
    fleet_.claims = objects(Kind::claims, claim_of);
    for (Template& one : objects(Kind::claim_templates, template_of)) add_template(std::move(one));
    fleet_.events = objects(Kind::events, event_of);
    for (Slice& one : documents_.parsed.slices) add_slice(std::move(one));
    SliceFacts facts;
    for (Slice& one : objects(Kind::slices, [&](const json& object) { return slice_of(object, facts); })) {
      add_slice(std::move(one));
    }
    sort();
    say_what_is_unread();
    finish_pools();
    for (Node& node : fleet_.nodes) finish(node);
    say_strangers();
    return std::move(fleet_);
  }

 private:
  // All of a kind, of pages that can be read whole; the pages' texts are then gone.
  template <typename Parse>
  std::vector<std::invoke_result_t<Parse, const json&>> objects(Kind kind, const Parse& parse) {
    std::vector<std::invoke_result_t<Parse, const json&>> all;
    std::size_t corrupt = 0, count = kind == Kind::slices ? documents_.parsed.seen : 0;
    Lost lost;
    if (kind == Kind::slices) lost = std::move(documents_.parsed.lost);
    for (std::string& page : documents_.list(kind)) {
      const std::size_t before = all.size();
      const auto read = read_items(page, "a list", {}, [&](const json& item) {
        ++count;
        if (!is_understood(kind, item) || !has_readable_amounts(kind, item, resources_))
          lose(lost, place_of(item, count));
        if (kind == Kind::events || has_name(item)) all.push_back(parse(item));
      });
      corrupt += read ? 0 : 1;
      if (!read) all.erase(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
      std::string().swap(page);
    }
    const std::string plural(plural_of(kind));
    if (corrupt > 0) say_unread(kind, counted(corrupt, "page") + " of the list of " + plural + " cannot be parsed");
    if (lost.count > 0) {
      say_unread(kind, std::to_string(lost.count) + " of " + std::to_string(count) + " " + plural +
                           " were not understood, wholly or in part: " + words_of(lost));
    }
    return all;
  }

  void say_unread(Kind kind, const std::string& sentence) {
    documents_.partial.emplace(plural_of(kind));
    fleet_.pods_partial |= kind == Kind::pods;
    fleet_.claims_partial |= kind == Kind::claims;
    fleet_.unknown.push_back(sentence);
    if (kind == Kind::nodes) fleet_.nodes_unread = sentence;
    if (kind == Kind::pods) fleet_.pods_unread = sentence;
  }

  // The sentences about nodes and pods: commands that would else say that there are none repeat them.
  void say_what_is_unread() {
    const auto find = [&](Kind kind, std::string& unread) {
      const std::string plural(plural_of(kind));
      if (!unread.empty() || !documents_.partial.contains(plural)) return;
      const auto sentence = std::ranges::find_if(fleet_.unknown, [&](const std::string& one) {
        return one.starts_with(plural + " ") || (one.starts_with("only ") && one.find(plural) != one.npos);
      });
      unread = sentence == fleet_.unknown.end() ? "not all " + plural + " could be read" : *sentence;
    };
    find(Kind::nodes, fleet_.nodes_unread);
    find(Kind::pods, fleet_.pods_unread);
  }

  // Agents that answered for a node that is not listed.
  void say_strangers() {
    std::vector<std::string> strangers;
    for (const auto& [node, answer] : documents_.agents) {
      const bool answered = answer.report || !answer.body.empty();
      if (answered && find_node(fleet_, node) == nullptr) strangers.push_back(node);
    }
    if (strangers.empty() || !fleet_.nodes_unread.empty()) return;  // else it is no wonder
    fleet_.unknown.push_back(counted(strangers.size(), "agent") +
                             " answered for nodes that are not listed: " + some_of(strangers, 3));
  }

  struct Template {
    std::string name;  // "namespace/name"
    std::vector<ClaimRequest> requests;
    std::vector<ClaimConstraint> constraints;
  };

  static Template template_of(const json& object) {
    const json& metadata = kube::member(object, "metadata");
    const json& spec = kube::member(kube::member(object, "spec"), "spec");
    return {kube::text_of(metadata, "namespace") + "/" + kube::text_of(metadata, "name"), requests_of(spec),
            constraints_of(spec)};
  }

  void add_template(Template one) {
    fleet_.claim_templates[one.name] = std::move(one.requests);
    fleet_.template_constraints[one.name] = std::move(one.constraints);
  }

  // Of each pool the slices of the newest generation count.
  void add_slice(Slice slice) {
    Pool& pool = slice.pool;
    Parts& parts = pools_[{pool.driver, pool.name}];
    if (slice.generation < parts.generation) return;
    if (slice.generation > parts.generation) parts = {};
    parts.generation = slice.generation;
    parts.expected = slice.slices;
    ++parts.slices;
    if (!pool.node.empty()) parts.pool.node = pool.node;
    auto& devices = parts.pool.devices;
    devices.insert(devices.end(), std::make_move_iterator(pool.devices.begin()),
                   std::make_move_iterator(pool.devices.end()));
    parts.pool.counters.merge(pool.counters);
  }

  void finish_pools() {
    for (auto& [key, parts] : pools_) {
      std::tie(parts.pool.driver, parts.pool.name) = key;
      parts.pool.complete = parts.slices >= parts.expected;
      if (is_neuron_pool(parts.pool)) claim_nodes_.insert(parts.pool.node);
      fleet_.pools.push_back(std::move(parts.pool));
    }
  }

  void sort() {
    sort_once(Kind::nodes, fleet_.nodes, [](const Node& node) { return std::tie(node.name); });
    sort_once(Kind::pods, fleet_.pods, [](const Pod& pod) { return std::tie(pod.pod_namespace, pod.name); });
    std::ranges::sort(fleet_.claims, {},
                      [](const Claim& claim) { return std::tie(claim.claim_namespace, claim.name); });
    std::ranges::sort(fleet_.classes, {}, [](const DeviceClass& one) -> const std::string& { return one.name; });
  }

  // By name, which is the end of the key; of objects with one key the first stays.
  template <typename Object, typename KeyOf>
  void sort_once(Kind kind, std::vector<Object>& all, const KeyOf& key_of) {
    std::ranges::stable_sort(all, {}, key_of);
    Lost twice;
    for (std::size_t i = 1; i < all.size(); ++i) {
      const bool is_first = key_of(all[i - 1]) == key_of(all[i]) && (i < 2 || key_of(all[i - 2]) != key_of(all[i]));
      if (is_first) lose(twice, printable(all[i].name));
    }
    if (twice.count == 0) return;
    const auto is_same = [&](const Object& one, const Object& other) { return key_of(one) == key_of(other); };
    all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
    say_unread(kind, counted(twice.count, "object") + " of the list of " + std::string(plural_of(kind)) +
                         (twice.count == 1 ? " is" : " are") + " there more than once: " + words_of(twice));
  }

  void finish(Node& node) {
    const auto agent = agents_.find(node.name);
    if (agent != agents_.end()) {
      node.agent_pod = agent->second.pod_namespace + "/" + agent->second.name;
      node.agent_version = agent->second.version();
    }
    read_report(node);
    if (node.instance_type.empty() && node.report) node.instance_type = node.report->host.instance_type;
    node.mode = mode_of(node);
  }

  void read_report(Node& node) {
    const auto answer = documents_.agents.find(node.name);
    if (answer == documents_.agents.end()) {
      node.report_missing = !node.agent_pod.empty() ? "the agent was not asked"
                            : fleet_.pods_unread.empty()
                                ? "no agent's pod was found on this node"
                                : "no agent's pod was found on this node, and not all pods could be read";
      return;
    }
    AgentAnswer& given = answer->second;
    if (!given.report && given.missing.empty()) parse_report(given);
    node.report = std::move(given.report);
    node.report_missing = std::move(given.missing);
  }

  [[nodiscard]] Mode mode_of(const Node& node) const {
    if (claim_nodes_.contains(node.name)) return Mode::claims;
    const bool has_units = std::ranges::any_of(node.capacity, [](const auto& entry) {
      return entry.second > 0 && model::parse_resource(entry.first).has_value();
    });
    return has_units ? Mode::device_plugin : Mode::none;
  }

  struct Parts {
    Pool pool;
    std::int64_t generation = -1;
    std::int64_t expected = 0;
    std::int64_t slices = 0;
  };

  Documents& documents_;
  const std::map<std::string, AgentPod> agents_ = agent_pods(documents_.list(Kind::pods));
  std::set<std::string> resources_;                              // of device classes
  std::map<std::tuple<std::string, std::string>, Parts> pools_;  // by driver and name
  std::set<std::string> claim_nodes_;                            // with a pool of this project
  Fleet fleet_;
};

// CPUs and verdicts on cores of devices that are not unhealthy are two fifths of a report, and read by no command.
void drop_unread(report::NodeReport& report) {
  for (model::NeuronDevice& device : report.host.devices) {
    device.cpus.reset();
    if (device.health.state != model::HealthState::unhealthy) std::vector<model::Health>().swap(device.core_health);
  }
  for (model::EfaInterface& efa : report.host.efas) efa.cpus.reset();
}

}  // namespace

std::string_view plural_of(Kind kind) {
  constexpr std::array<std::string_view, kKinds> kNames = {
      "nodes", "pods", "resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses", "events"};
  return kNames.at(static_cast<std::size_t>(kind));
}

void parse_report(AgentAnswer& answer) {
  const std::string body = std::exchange(answer.body, {});  // `= {}` would keep its memory
  auto report = report::parse_node_report(body);
  if (report) {
    drop_unread(*report);
    answer.report = *std::move(report);
  } else {
    answer.missing = "the agent's answer is not understood: " + report.error().message;
  }
}

Result<Page> parse_slices(std::string_view page, SliceFacts& facts, ParsedSlices& parsed) {
  Page read;
  ParsedSlices found;
  TRY_ASSIGN(read.next, read_items(page, "the list of resourceslices", {}, [&](const json& item) {
               const std::size_t number = parsed.seen + ++found.seen;
               if (!is_understood(Kind::slices, item)) lose(found.lost, place_of(item, number));
               if (has_name(item)) found.slices.push_back(slice_of(item, facts));
             }));
  read.items = found.seen;
  parsed.seen += found.seen;
  std::ranges::move(found.slices, std::back_inserter(parsed.slices));
  parsed.lost.count += found.lost.count;
  for (std::string& one : found.lost.first) {
    if (parsed.lost.first.size() < Lost::kKept) parsed.lost.first.push_back(std::move(one));
  }
  return read;
}

Fleet make_fleet(Documents documents) {
  return Maker(documents).run();
}

namespace {

void add(Amounts& amounts, const Amounts& more) {
  for (const auto& [name, amount] : more) {
    std::int64_t& sum = amounts[name];
    if (__builtin_add_overflow(sum, amount, &sum)) sum = std::numeric_limits<std::int64_t>::max();
  }
}

void raise_to(Amounts& amounts, const Amounts& others) {
  for (const auto& [name, amount] : others) amounts[name] = std::max(amounts[name], amount);
}

// The first of a sorted list that is not before `key`, if it has that key.
template <typename List, typename Key, typename KeyOf>
auto find_sorted(const List& list, const Key& key, const KeyOf& key_of) -> decltype(&list.front()) {
  const auto found = std::ranges::lower_bound(list, key, {}, key_of);
  return found == list.end() || key_of(*found) != key ? nullptr : &*found;
}

}  // namespace

Amounts scheduled_amounts(const Pod& pod) {
  if (has_ended(pod)) return {};
  Amounts running;   // containers and sidecars
  Amounts sidecars;  // those begun so far
  Amounts most;      // of an init container, beside the sidecars before it
  for (const Container& container : pod.containers) {
    if (!container.init) add(running, container.requests);
    if (container.sidecar) add(running, container.requests);
  }
  for (const Container& container : pod.containers) {
    if (!container.init) continue;
    Amounts now = sidecars;
    add(now, container.requests);
    raise_to(most, now);
    if (container.sidecar) sidecars = std::move(now);
  }
  raise_to(running, most);
  return running;
}

bool has_ended(const Pod& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed";
}

bool asks_for_hardware(const Pod& pod) {
  const auto has_requests = [](const Container& container) { return !container.requests.empty(); };
  return !pod.claims.empty() || std::ranges::any_of(pod.containers, has_requests);
}

bool is_neuron_pool(const Pool& pool) {
  return std::ranges::any_of(pool.devices, [](const SliceDevice& device) {
    const auto type = device.attributes.find("resourceType");
    if (type == device.attributes.end() || !type->second.text) return false;
    return type->second.text->starts_with("neuron_") || *type->second.text == "efa";
  });
}

const Node* find_node(const Fleet& fleet, const std::string& name) {
  return find_sorted(fleet.nodes, name, [](const Node& node) -> const std::string& { return node.name; });
}

const Pod* find_pod(const Fleet& fleet, const std::string& pod_namespace, const std::string& name) {
  return find_sorted(fleet.pods, std::tie(pod_namespace, name),
                     [](const Pod& pod) { return std::tie(pod.pod_namespace, pod.name); });
}

const Claim* find_claim(const Fleet& fleet, const std::string& claim_namespace, const std::string& name) {
  return find_sorted(fleet.claims, std::tie(claim_namespace, name),
                     [](const Claim& claim) { return std::tie(claim.claim_namespace, claim.name); });
}

}  // namespace neuron::fleet
