#include <algorithm>
#include <set>
#include <utility>

#include "tools/kubectl-neuron/device_search.h"

// Claims, and resources that are served by claims: what the scheduler's allocator does with them.
namespace neuron::fleet {
namespace {

using Kind = Obstacle::Kind;

// A missing object may be one that this user may not read.
Kind missing(const Fleet& fleet, Kind kind) {
  return fleet.unknown.empty() ? kind : Kind::unread;
}

const Pool* pool_of(const NodeState& state, const AllocatedDevice& device) {
  const auto found = std::ranges::find_if(
      state.pools, [&](const Pool& pool) { return pool.driver == device.driver && pool.name == device.pool; });
  return found == state.pools.end() ? nullptr : &*found;
}

// An allocated claim binds the pod to its node.
void add_allocated(const Fleet& fleet, const Claim& claim, const NodeState& state, std::vector<Obstacle>& all) {
  const auto bad = std::ranges::find_if(
      claim.devices, [&](const AllocatedDevice& device) { return pool_of(state, device) == nullptr; });
  if (bad == claim.devices.end()) return;
  const auto pool = std::ranges::find_if(
      fleet.pools, [&](const Pool& one) { return one.driver == bad->driver && one.name == bad->pool; });
  all.push_back(obstacle(Kind::claim_elsewhere, claim.name, pool == fleet.pools.end() ? bad->pool : pool->node));
}

void add_template(const Fleet& fleet, const Pod& pod, const PodClaim& own, std::vector<WantedClaim>& wanted,
                  std::vector<Obstacle>& all) {
  const std::string name = pod.pod_namespace + "/" + own.claim_template;
  const auto requests = fleet.claim_templates.find(name);
  if (requests == fleet.claim_templates.end()) {
    all.push_back(obstacle(missing(fleet, Kind::claim_missing), own.claim_template, "template"));
    return;
  }
  const auto constraints = fleet.template_constraints.find(name);
  wanted.push_back(
      {own.name, requests->second,
       constraints == fleet.template_constraints.end() ? std::vector<ClaimConstraint>{} : constraints->second});
}

std::vector<WantedClaim> wanted_claims(const Fleet& fleet, const Pod& pod, const NodeState& state,
                                       std::vector<Obstacle>& all) {
  std::vector<WantedClaim> wanted;
  for (const PodClaim& own : pod.claims) {
    const Claim* claim = own.claim.empty() ? nullptr : find_claim(fleet, pod.pod_namespace, own.claim);
    const bool is_full = claim != nullptr && claim->reserved_for.size() >= kMostSharing &&
                         std::ranges::find(claim->reserved_for, pod.name) == claim->reserved_for.end();
    if (is_full) {
      all.push_back(obstacle(Kind::claim_full, claim->name));
      all.back().total = static_cast<std::int64_t>(claim->reserved_for.size());
    } else if (claim != nullptr && claim->allocated) {
      add_allocated(fleet, *claim, state, all);
    } else if (claim != nullptr) {
      wanted.push_back({own.name, claim->requests, claim->constraints});
    } else if (!own.claim_template.empty()) {
      add_template(fleet, pod, own, wanted, all);
    } else {
      all.push_back(obstacle(missing(fleet, Kind::claim_missing), own.claim));
    }
  }
  return wanted;
}

// The claim that the scheduler makes for resources: a request for each container and resource.
void add_resources(const Fleet& fleet, const Pod& pod, const NodeState& state, std::vector<WantedClaim>& wanted) {
  WantedClaim claim;
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    for (const auto& [resource, amount] : pod.containers[i].requests) {
      if (amount <= 0 || !is_by_claim(fleet, state.node, resource)) continue;
      ClaimRequest request;
      request.name = "container-" + std::to_string(i) + "-" + resource.substr(resource.find('/') + 1);
      request.device_class = class_of_resource(fleet, resource)->name;
      request.count = amount;
      claim.requests.push_back(std::move(request));
      if (claim.name.empty() || amount > kMostPerClaim) claim.name = resource;
    }
  }
  if (!claim.requests.empty()) wanted.push_back(std::move(claim));
}

// The fewest devices that a claim can mean; "all" at least one.
std::int64_t least_devices(const WantedClaim& claim) {
  const auto least = [](const ClaimRequest& one) { return one.all ? std::int64_t{1} : one.count; };
  std::int64_t sum = 0;
  for (const ClaimRequest& request : claim.requests) {
    if (request.first_available.empty()) {
      sum += least(request);
      continue;
    }
    std::int64_t fewest = kMostPerClaim + 1;
    for (const ClaimRequest& one : request.first_available) fewest = std::min(fewest, least(one));
    sum += fewest;
  }
  return sum;
}

std::vector<const ClaimRequest*> alternatives(const ClaimRequest& request) {
  std::vector<const ClaimRequest*> all;
  if (request.first_available.empty()) all.push_back(&request);
  for (const ClaimRequest& one : request.first_available) all.push_back(&one);
  return all;
}

std::vector<const ClaimRequest*> alternatives(const WantedClaim& claim) {
  std::vector<const ClaimRequest*> all;
  for (const ClaimRequest& request : claim.requests) {
    for (const ClaimRequest* one : alternatives(request)) all.push_back(one);
  }
  return all;
}

void add_rules(const Fleet& fleet, const std::vector<WantedClaim>& wanted, std::vector<Obstacle>& all) {
  for (const WantedClaim& claim : wanted) {
    if (const std::int64_t least = least_devices(claim); least > kMostPerClaim) {
      Obstacle limit = obstacle(Kind::claim_limit, claim.name);
      limit.asked = least;
      limit.total = kMostPerClaim;
      all.push_back(limit);
    }
    for (const ClaimRequest* request : alternatives(claim)) {
      const bool known =
          std::ranges::find(fleet.classes, request->device_class, &DeviceClass::name) != fleet.classes.end();
      if (!known) all.push_back(obstacle(missing(fleet, Kind::class_unknown), request->device_class, request->name));
    }
  }
}

// Number of devices of each fitness for a request, and holders of those that are not free.
struct Tally {
  std::map<Fitness, std::int64_t> counts;
  std::map<std::string, std::int64_t> holders;
  std::map<Fitness, std::string> parts;  // of the first device
  std::int64_t selected = 0;
};

Tally tally(DeviceSearch& search, const ClaimRequest& request) {
  Tally all;
  const std::vector<Rated> rated = search.rate(request);
  for (std::size_t i = 0; i < rated.size(); ++i) {
    const Fitness fitness = rated[i].fitness;
    ++all.counts[fitness];
    // A class names the driver first: the part that says most is not about that.
    std::string& part = all.parts[fitness];
    const bool better = part.empty() || (fitness == Fitness::other && part.starts_with("device.driver"));
    if (better) part = rated[i].part;
    if (fitness == Fitness::other || fitness == Fitness::unknown) continue;
    ++all.selected;
    const bool taken = fitness == Fitness::held || fitness == Fitness::capacity || fitness == Fitness::counters;
    if (!taken) continue;
    for (const std::string& holder : search.stocks().devices[i].holders) ++all.holders[holder];
  }
  return all;
}

// Pods that have counters of these devices through others: cores of a device that is asked for as a whole.
void add_counter_holders(const DeviceSearch& search, std::map<std::string, std::int64_t>& holders) {
  if (!holders.empty()) return;
  for (const Stock& stock : search.stocks().devices) {
    if (stock.device->consumes.empty()) continue;
    for (const std::string& holder : stock.holders) ++holders[holder];
  }
}

Kind kind_of(const Tally& tally, std::int64_t asked) {
  const auto at_least = [&](Fitness fitness) {
    const auto found = tally.counts.find(fitness), free = tally.counts.find(Fitness::free);
    return found != tally.counts.end() && found->second + (free == tally.counts.end() ? 0 : free->second) >= asked;
  };
  if (at_least(Fitness::held)) return Kind::too_few_devices;
  if (at_least(Fitness::tainted)) return Kind::tainted;
  if (at_least(Fitness::counters)) return Kind::counters;
  if (at_least(Fitness::capacity)) return Kind::capacity;
  return Kind::too_few_devices;
}

Obstacle of_request(DeviceSearch& search, const ClaimRequest& request) {
  Tally found = tally(search, request);
  if (found.counts[Fitness::unknown] > 0) return obstacle(Kind::selector, request.name, found.parts[Fitness::unknown]);
  if (found.counts[Fitness::incomplete] > 0 && found.counts[Fitness::incomplete] == found.selected) {
    return obstacle(Kind::incomplete_pool, request.name);
  }
  if (found.selected == 0) {
    const std::string& part = found.parts[Fitness::other];
    const bool of_lnc = part.find(".lnc") != std::string::npos;
    return obstacle(of_lnc ? Kind::lnc : Kind::no_device, request.name, part);
  }
  const std::int64_t asked = request.all ? found.selected : request.count;
  Obstacle one = obstacle(kind_of(found, asked), request.name);
  if (one.kind == Kind::tainted) one.detail = found.parts[Fitness::tainted];
  if (one.kind == Kind::counters) add_counter_holders(search, found.holders);
  one.asked = asked;
  one.free = found.counts[Fitness::free];
  one.total = found.selected;
  for (const auto& [pod, amount] : found.holders) one.holders.push_back({pod, amount});
  std::ranges::stable_sort(one.holders, std::greater<>(), &Holder::amount);
  return one;
}

std::string names_of(const std::vector<WantedClaim>& claims) {
  std::string all;
  for (const WantedClaim& claim : claims) all += (all.empty() ? "" : ", ") + claim.name;
  return all;
}

// After no choice was found: each request alone, then all without constraints.
std::vector<Obstacle> reasons(DeviceSearch& search) {
  std::vector<Obstacle> all;
  for (const WantedClaim& claim : search.claims()) {
    for (const ClaimRequest& request : claim.requests) {
      std::vector<Obstacle> own;
      for (const ClaimRequest* each : alternatives(request)) {
        if (search.was_cut()) return all;
        const bool alone = search.run_alone(*each) != DeviceSearch::Outcome::none;
        if (alone) own.clear();
        if (alone) break;
        own.push_back(of_request(search, *each));
      }
      all.insert(all.end(), own.begin(), own.end());
    }
  }
  if (!all.empty()) return all;
  const bool free_alone = search.run(DeviceSearch::Constraints::ignore) == DeviceSearch::Outcome::found;
  for (const WantedClaim& claim : search.claims()) {
    for (const ClaimConstraint& constraint : claim.constraints) {
      const std::string& name =
          constraint.match_attribute.empty() ? constraint.distinct_attribute : constraint.match_attribute;
      if (free_alone) all.push_back(obstacle(Kind::constraint, name, claim.name));
    }
  }
  if (all.empty()) all.push_back(obstacle(Kind::together, names_of(search.claims())));
  return all;
}

// A selector that cannot be evaluated for some device of the node: the scheduler may take it, pass over it or end.
std::vector<Obstacle> doubts(DeviceSearch& search) {
  std::vector<Obstacle> all;
  for (const WantedClaim& claim : search.claims()) {
    for (const ClaimRequest* request : alternatives(claim)) {
      if (search.was_cut()) return all;
      Tally found = tally(search, *request);
      if (found.counts[Fitness::unknown] == 0) continue;
      all.push_back(obstacle(Kind::selector, request->name, found.parts[Fitness::unknown]));
    }
  }
  return all;
}

}  // namespace

std::optional<FreeByClaim> free_by_claim(const Fleet& fleet, const Pod& pod, const NodeState& state, Effort* effort) {
  std::vector<Obstacle> unused;
  std::vector<WantedClaim> wanted = wanted_claims(fleet, pod, state, unused);
  add_resources(fleet, pod, state, wanted);
  if (wanted.empty() || state.pools.empty()) return FreeByClaim{};
  DeviceSearch search(fleet, state, std::move(wanted), effort);
  const std::vector<const ClaimRequest*> requests = alternatives(search.claims().front());
  if (requests.empty()) return FreeByClaim{};
  const std::vector<Rated> rated = search.rate(*requests.front());
  if (search.was_cut()) return std::nullopt;
  const bool is_share = std::ranges::any_of(requests.front()->capacity, [](const auto& one) {
    return one.first == "cores" || one.first.ends_with("/cores");
  });
  if (!is_share) return FreeByClaim{std::ranges::count(rated, Fitness::free, &Rated::fitness), false};
  FreeByClaim cores{0, true};
  for (std::size_t i = 0; i < rated.size(); ++i) {
    const bool is_open = rated[i].fitness == Fitness::free || rated[i].fitness == Fitness::capacity;
    if (is_open) cores.units += cores_left(search.stocks().devices[i]);
  }
  return cores;
}

std::vector<Obstacle> claim_obstacles(const Fleet& fleet, const Pod& pod, const NodeState& state,
                                      std::vector<ClaimResult>& devices, Effort* effort) {
  std::vector<Obstacle> all;
  std::vector<WantedClaim> wanted = wanted_claims(fleet, pod, state, all);
  const bool by_name = !wanted.empty();
  add_resources(fleet, pod, state, wanted);
  if (wanted.empty()) return all;
  add_rules(fleet, wanted, all);
  if (!all.empty()) return all;
  if (state.pools.empty()) {
    const char* offer = state.node.mode == Mode::device_plugin ? "device plugin" : "nothing";
    all.push_back(obstacle(Kind::other_mode, by_name ? wanted.front().name : "", offer));
    if (!by_name) all.back() = obstacle(Kind::no_resource, wanted.front().name);
    return all;
  }
  DeviceSearch search(fleet, state, std::move(wanted), effort);
  all = doubts(search);
  if (search.was_cut()) return {obstacle(Kind::search, names_of(search.claims()))};
  if (!all.empty()) return all;
  const DeviceSearch::Outcome outcome = search.run(DeviceSearch::Constraints::apply);
  if (outcome == DeviceSearch::Outcome::found) devices = search.results();
  if (outcome == DeviceSearch::Outcome::none && search.against_all() != nullptr) {
    const ClaimConstraint& broken = *search.against_all();
    const bool match = !broken.match_attribute.empty();
    all.push_back(obstacle(Kind::all_differ, match ? broken.match_attribute : broken.distinct_attribute,
                           names_of(search.claims())));
  } else if (outcome == DeviceSearch::Outcome::none && search.over_limit() > 0) {
    all.push_back(obstacle(Kind::claim_limit, names_of(search.claims())));
    all.back().asked = search.over_limit();
    all.back().total = kMostPerClaim;
  } else if (outcome == DeviceSearch::Outcome::none) {
    all = reasons(search);
  }
  for (Obstacle& one : all) {
    const bool other = one.kind == Kind::no_device && state.node.mode == Mode::device_plugin;
    if (other) one = obstacle(Kind::other_mode, one.name, "device plugin");
  }
  if (search.was_cut()) all.clear();
  if (search.was_cut() || outcome == DeviceSearch::Outcome::gave_up)
    all.push_back(obstacle(Kind::search, names_of(search.claims())));
  return all;
}

}  // namespace neuron::fleet
