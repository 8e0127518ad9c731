#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/device_search.h"

// The devices of a node and what claims have of them; pods that are placed there with their claims.
namespace neuron::fleet {
namespace {

std::optional<std::int64_t> parse(const std::string& text) {
  const auto value = kube::parse_quantity(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<std::int64_t> quantity(const Labels& quantities, const std::string& name) {
  const auto found = quantities.find(name);
  return found == quantities.end() ? std::nullopt : parse(found->second);
}

// As much as can be counted, where it is more.
void add(std::int64_t& sum, std::int64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

// A pod may have several shares of a device, and is one holder of it.
void add_holder(Stock& stock, const std::string& name) {
  if (std::ranges::find(stock.holders, name) == stock.holders.end()) stock.holders.push_back(name);
}

void add_claim(const Claim& claim, Stock& stock, const AllocatedDevice& device) {
  if (device.admin_access) return;
  if (!stock.device->multiple || device.consumed_capacity.empty()) stock.held = true;
  for (const auto& [name, text] : device.consumed_capacity) {
    add(stock.consumed[name], amount_of(text));
  }
  for (const std::string& pod : claim.reserved_for) add_holder(stock, claim.claim_namespace + "/" + pod);
  if (claim.reserved_for.empty()) add_holder(stock, "claim " + claim.claim_namespace + "/" + claim.name);
}

}  // namespace

std::int64_t amount_of(const std::string& text) {
  return parse(text).value_or(0);
}

std::int64_t cores_left(const Stock& stock) {
  const std::int64_t all = quantity(stock.device->capacity, "cores").value_or(0);
  if (stock.held || !stock.device->multiple) return stock.held ? 0 : all;
  const auto used = stock.consumed.find("cores");
  return used == stock.consumed.end() ? all : std::max<std::int64_t>(all - used->second, 0);
}

std::optional<bool> has_capacity(const ClaimRequest& wish, const Stock& stock) {
  const auto need = consumption(wish, *stock.pool, *stock.device);
  if (!need) return std::nullopt;
  return std::ranges::all_of(*need, [&](const auto& one) {
    const auto used = stock.consumed.find(one.first);
    const bool is_consumed = stock.device->multiple && used != stock.consumed.end();
    return one.second <= quantity(stock.device->capacity, one.first).value_or(0) - (is_consumed ? used->second : 0);
  });
}

std::optional<std::map<std::string, std::int64_t>> consumption(const ClaimRequest& wish, const Pool& pool,
                                                               const SliceDevice& device) {
  std::map<std::string, std::int64_t> all;
  const std::string own = pool.driver + "/";
  Labels asked;
  for (const auto& [name, text] : wish.capacity) {
    asked[name.starts_with(own) ? name.substr(own.size()) : name] = text;
  }
  for (const auto& [name, text] : asked) {
    const auto need = parse(text), have = quantity(device.capacity, name);
    if (!need || !have) return std::nullopt;
    all[name] = *need;
  }
  if (!device.multiple) return all;
  for (const auto& [name, text] : device.capacity) {
    // The policies of this driver's slices: of the cores all by default, of the memory none.
    const bool none = name == "memory" && device.attributes.contains("resourceType");
    if (!asked.contains(name)) all[name] = none ? 0 : amount_of(text);
  }
  return all;
}

Stocks stocks_of(const NodeState& state) {
  Stocks stocks;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
  for (const Pool& pool : state.pools) {
    auto& counters = stocks.counters[&pool];
    for (const auto& [set, values] : pool.counters) {
      for (const auto& [name, text] : values) counters[set][name] = amount_of(text);
    }
    for (const SliceDevice& device : pool.devices) {
      places[{pool.driver, pool.name, device.name}] = stocks.devices.size();
      stocks.devices.push_back({&pool, &device, false, {}, {}});
    }
  }
  std::set<std::size_t> counted;
  for (const Claim& claim : state.claims) {
    for (const AllocatedDevice& device : claim.devices) {
      const auto at = places.find({device.driver, device.pool, device.device});
      if (at == places.end()) continue;
      Stock& stock = stocks.devices[at->second];
      add_claim(claim, stock, device);
      if (device.admin_access || !counted.insert(at->second).second) continue;
      for (const auto& [set, uses] : stock.device->consumes) {
        for (const auto& [name, text] : uses) {
          std::int64_t& left = stocks.counters[stock.pool][set][name];
          left = std::max<std::int64_t>(left - amount_of(text), 0);
        }
      }
    }
  }
  return stocks;
}

void place(const Fleet& fleet, const Pod& pod, const Verdict& verdict, NodeState& state) {
  Pod placed = pod;
  placed.node = state.node.name;
  placed.phase = "Running";
  for (const ClaimResult& result : verdict.devices) {
    const auto own = std::ranges::find(placed.claims, result.claim, &PodClaim::name);
    Claim claim;
    claim.claim_namespace = pod.pod_namespace;
    claim.name = own != placed.claims.end() && !own->claim.empty() ? own->claim : pod.name + "-" + result.claim;
    if (own != placed.claims.end()) own->claim = claim.name;
    if (own == placed.claims.end())  // as the scheduler records the claim that it makes for resources
      placed.claims.push_back({"", claim.name, ""});
    if (const Claim* known = find_claim(fleet, claim.claim_namespace, claim.name)) claim = *known;
    claim.allocated = true;
    claim.devices = result.devices;
    claim.reserved_for = {pod.name};
    state.claims.push_back(claim);
  }
  take_general(placed, 1, state);
  state.pods.push_back(placed);
}

void share_claims(const Pod& pod, const Verdict& verdict, const NodeState& state, Fleet& rules) {
  for (const PodClaim& own : pod.claims) {
    if (own.claim.empty() || !own.claim_template.empty()) continue;
    const auto at = std::ranges::find_if(rules.claims, [&](const Claim& claim) {
      return claim.claim_namespace == pod.pod_namespace && claim.name == own.claim;
    });
    if (at == rules.claims.end()) continue;
    const auto given = std::ranges::find(verdict.devices, own.name, &ClaimResult::claim);
    if (!at->allocated && given != verdict.devices.end()) at->devices = given->devices;
    at->allocated = true;
    at->reserved_for.push_back(pod.name);
    // Where it is: for sentences about other nodes.
    for (const Pool& pool : state.pools) {
      const auto same = [&](const Pool& one) { return one.driver == pool.driver && one.name == pool.name; };
      if (std::ranges::none_of(rules.pools, same))
        rules.pools.push_back({pool.driver, pool.name, pool.node, true, {}, {}});
    }
  }
}

Pod made_again(Pod pod) {
  pod.node.clear();
  pod.phase = "Pending";
  pod.scheduled_reason = "Unschedulable";  // some scheduler served it
  std::erase_if(pod.claims, [](const PodClaim& claim) { return claim.name.empty(); });
  for (PodClaim& claim : pod.claims) {
    if (!claim.claim_template.empty()) claim.claim.clear();
  }
  return pod;
}

}  // namespace neuron::fleet
