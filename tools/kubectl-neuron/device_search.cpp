#include "tools/kubectl-neuron/device_search.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "agent/kube/answers.h"

namespace neuron::fleet {
namespace {

std::optional<std::int64_t> quantity(const Labels& quantities, const std::string& name) {
  const auto found = quantities.find(name);
  return found == quantities.end() ? std::nullopt : kube::parse_quantity(found->second);
}

const AttributeValue* attribute(const Stock& stock, const std::string& name) {
  const std::string own = stock.pool->driver + "/";
  const auto& all = stock.device->attributes;
  const auto found = all.find(name.starts_with(own) ? name.substr(own.size()) : name);
  return found == all.end() ? nullptr : &found->second;
}

bool is_same(const AttributeValue& a, const AttributeValue& b) {
  return a.number == b.number && a.flag == b.flag && a.text == b.text;
}

// Whether a constraint is about a request, "name" or "name/alternative".
bool is_about(const ClaimConstraint& constraint, const std::string& request) {
  const std::string parent = request.substr(0, request.find('/'));
  return constraint.requests.empty() || std::ranges::any_of(constraint.requests, [&](const std::string& one) {
           return one == request || one == parent;
         });
}

bool endures(const ClaimRequest& wish, const Taint& taint) {
  return taint.effect != "NoSchedule" && taint.effect != "NoExecute" ? true : tolerates(wish.tolerations, taint);
}

void add_claim(const Claim& claim, Stock& stock, const AllocatedDevice& device) {
  if (device.admin_access) return;
  if (!stock.device->multiple || device.consumed_capacity.empty()) stock.held = true;
  for (const auto& [name, text] : device.consumed_capacity) {
    stock.consumed[name] += kube::parse_quantity(text).value_or(0);
  }
  for (const std::string& pod : claim.reserved_for) stock.holders.push_back(claim.claim_namespace + "/" + pod);
  if (claim.reserved_for.empty()) stock.holders.push_back("claim " + claim.claim_namespace + "/" + claim.name);
}

// Whether a device has left what a request consumes of it; nullopt: as consumption().
std::optional<bool> has_capacity(const ClaimRequest& wish, const Stock& stock) {
  const auto need = consumption(wish, *stock.pool, *stock.device);
  if (!need) return std::nullopt;
  return std::ranges::all_of(*need, [&](const auto& one) {
    const auto used = stock.consumed.find(one.first);
    const bool is_consumed = stock.device->multiple && used != stock.consumed.end();
    return one.second <= quantity(stock.device->capacity, one.first).value_or(0) - (is_consumed ? used->second : 0);
  });
}

}  // namespace

std::optional<std::map<std::string, std::int64_t>> consumption(const ClaimRequest& wish, const Pool& pool,
                                                               const SliceDevice& device) {
  std::map<std::string, std::int64_t> all;
  const std::string own = pool.driver + "/";
  Labels asked;
  for (const auto& [name, text] : wish.capacity) {
    asked[name.starts_with(own) ? name.substr(own.size()) : name] = text;
  }
  for (const auto& [name, text] : asked) {
    const auto need = kube::parse_quantity(text), have = quantity(device.capacity, name);
    if (!need || !have) return std::nullopt;
    all[name] = *need;
  }
  if (!device.multiple) return all;
  for (const auto& [name, text] : device.capacity) {
    // The policies of this driver's slices: of the cores all by default, of the memory none.
    const bool none = name == "memory" && device.attributes.contains("resourceType");
    if (!asked.contains(name)) all[name] = none ? 0 : kube::parse_quantity(text).value_or(0);
  }
  return all;
}

Stocks stocks_of(const NodeState& state) {
  Stocks stocks;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
  for (const Pool& pool : state.pools) {
    auto& counters = stocks.counters[&pool];
    for (const auto& [set, values] : pool.counters) {
      for (const auto& [name, text] : values) counters[set][name] = kube::parse_quantity(text).value_or(0);
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
          stocks.counters[stock.pool][set][name] -= kube::parse_quantity(text).value_or(0);
        }
      }
    }
  }
  return stocks;
}

DeviceSearch::DeviceSearch(const Fleet& fleet, const NodeState& state, std::vector<WantedClaim> claims)
    : fleet_(fleet), stocks_(stocks_of(state)), claims_(std::move(claims)) {}

const std::vector<SelectorAnswer>& DeviceSearch::matches(const ClaimRequest& wish) {
  const auto [at, is_new] = matches_.try_emplace(&wish);
  if (!is_new) return at->second;
  std::vector<DeviceSelector> selectors;
  const auto kind = std::ranges::find(fleet_.classes, wish.device_class, &DeviceClass::name);
  if (kind != fleet_.classes.end()) selectors = kind->selectors;
  selectors.insert(selectors.end(), wish.selectors.begin(), wish.selectors.end());
  for (const Stock& stock : stocks_.devices) {
    SelectorAnswer all{Match::yes, ""};
    for (const DeviceSelector& selector : selectors) {
      const SelectorAnswer one = selects(selector.expression, stock.pool->driver, *stock.device);
      if (one.match == Match::yes) continue;
      all = one;
      break;  // the scheduler stops at the first, and an error in it is one of the whole
    }
    at->second.push_back(std::move(all));
  }
  return at->second;
}

Fitness DeviceSearch::state_of(const ClaimRequest& wish, const Stock& stock) const {
  if (!stock.pool->complete) return Fitness::incomplete;
  const bool tainted =
      std::ranges::any_of(stock.device->taints, [&](const Taint& taint) { return !endures(wish, taint); });
  // The driver's counters and shares make admin access wait as well (docs/dra.md#admin-access).
  if (stock.held && (!wish.admin_access || stock.device->multiple)) return Fitness::held;
  const auto enough = has_capacity(wish, stock);
  if (!enough || !*enough) return enough ? Fitness::capacity : Fitness::unknown;
  const auto counters = stocks_.counters.find(stock.pool);
  for (const auto& [set, uses] : stock.device->consumes) {
    for (const auto& [name, text] : uses) {
      const auto& sets = counters->second;
      const auto found = sets.find(set);
      const auto left = found == sets.end() ? std::map<std::string, std::int64_t>{} : found->second;
      const auto one = left.find(name);
      const std::int64_t use = kube::parse_quantity(text).value_or(0);
      if (use > (one == left.end() ? 0 : one->second)) return Fitness::counters;
    }
  }
  return tainted ? Fitness::tainted : Fitness::free;
}

std::vector<Rated> DeviceSearch::rate(const ClaimRequest& request) {
  std::vector<Rated> all;
  const std::vector<SelectorAnswer>& selected = matches(request);
  for (std::size_t i = 0; i < selected.size(); ++i) {
    const Stock& stock = stocks_.devices[i];
    Rated& one = all.emplace_back();
    one.part = selected[i].part;
    if (selected[i].match != Match::yes) {
      one.fitness = selected[i].match == Match::no ? Fitness::other : Fitness::unknown;
      continue;
    }
    one.fitness = state_of(request, stock);
    const auto bad = std::ranges::find_if(stock.device->taints, [&](const Taint& it) { return !endures(request, it); });
    if (bad != stock.device->taints.end()) one.part = bad->key + (bad->value.empty() ? "" : "=" + bad->value);
  }
  return all;
}

const std::vector<std::size_t>& DeviceSearch::members(const ClaimRequest& wish) {
  const auto [at, is_new] = members_.try_emplace(&wish);
  if (!is_new) return at->second;
  const std::vector<SelectorAnswer>& selected = matches(wish);
  for (std::size_t i = 0; i < selected.size(); ++i) {
    const bool is_member = selected[i].match == Match::yes && has_capacity(wish, stocks_.devices[i]).value_or(false);
    if (is_member) at->second.push_back(i);
  }
  return at->second;
}

std::int64_t DeviceSearch::size_of(const ClaimRequest& wish) {
  return wish.all ? static_cast<std::int64_t>(members(wish).size()) : wish.count;
}

std::int64_t DeviceSearch::excess_of(const WantedClaim& claim) {
  std::int64_t sum = 0;
  for (const ClaimRequest& request : claim.requests) {
    std::int64_t least = request.first_available.empty() ? size_of(request) : kMostPerClaim + 1;
    for (const ClaimRequest& one : request.first_available) least = std::min(least, size_of(one));
    sum += least;
  }
  return sum > kMostPerClaim ? sum : 0;
}

void DeviceSearch::begin(Constraints constraints) {
  steps_ = 0;
  over_limit_ = 0;
  against_all_ = nullptr;
  constraints_ = Constraints::ignore;
  while (!chosen_.empty()) give_back();
  distinct_.clear();
  constraints_ = constraints;
}

DeviceSearch::Outcome DeviceSearch::run(Constraints constraints) {
  begin(constraints);
  // This reads all members() as well, while nothing is chosen.
  for (const WantedClaim& claim : claims_) over_limit_ = std::max(over_limit_, excess_of(claim));
  if (over_limit_ > 0) return Outcome::none;
  if (next_request(0, 0)) return Outcome::found;
  return steps_ > kMostSteps ? Outcome::gave_up : Outcome::none;
}

DeviceSearch::Outcome DeviceSearch::run_alone(const ClaimRequest& request) {
  begin(Constraints::ignore);
  // Beyond the last claim: nothing follows.
  const bool found = fill(claims_.size(), 0, request, request.name);
  if (found) return Outcome::found;
  return steps_ > kMostSteps ? Outcome::gave_up : Outcome::none;
}

std::vector<ClaimResult> DeviceSearch::results() const {
  std::vector<ClaimResult> all;
  for (std::size_t i = 0; i < claims_.size(); ++i) all.push_back({claims_[i].name, {}});
  for (const Chosen& one : chosen_) {
    const Stock& stock = stocks_.devices[one.device];
    AllocatedDevice device{one.request,        stock.pool->driver,     stock.pool->name,
                           stock.device->name, one.wish->admin_access, {}};
    if (stock.device->multiple) {
      const auto used = consumption(*one.wish, *stock.pool, *stock.device);
      for (const auto& [name, amount] : *used) device.consumed_capacity[name] = kube::quantity_text(amount);
    }
    all[one.claim].devices.push_back(std::move(device));
  }
  return all;
}

bool DeviceSearch::next_request(std::size_t claim, std::size_t request) {
  if (claim >= claims_.size()) return true;
  if (request >= claims_[claim].requests.size()) {
    if (next_request(claim + 1, 0)) return true;
    over_limit_ = 0;  // other devices of the claims before may leave the next one another alternative
    return false;
  }
  const ClaimRequest& wish = claims_[claim].requests[request];
  return wish.first_available.empty() ? fill(claim, request, wish, wish.name) : first_of(claim, request, wish);
}

bool DeviceSearch::first_of(std::size_t claim, std::size_t request, const ClaimRequest& wish) {
  std::int64_t over_limit = kMostPerClaim + 1;  // where each alternative is
  for (const ClaimRequest& one : wish.first_available) {
    over_limit_ = 0;
    if (fill(claim, request, one, wish.name + "/" + one.name)) return true;
    if (against_all_ != nullptr) return false;
    over_limit = std::min(over_limit, over_limit_);
  }
  over_limit_ = over_limit;
  return false;
}

bool DeviceSearch::fill(std::size_t claim, std::size_t request, const ClaimRequest& wish, const std::string& name) {
  const Chosen kind{claim, 0, name, &wish};
  const auto before = std::ranges::count(chosen_, claim, &Chosen::claim);
  const std::int64_t devices = before + size_of(wish);
  if (devices > kMostPerClaim) {
    over_limit_ = devices;
    return false;
  }
  return wish.all ? take_all(claim, request, kind) : choose(claim, request, kind, wish.count, 0);
}

bool DeviceSearch::choose(std::size_t claim, std::size_t request, const Chosen& kind, std::int64_t missing,
                          std::size_t start) {
  if (missing == 0) return next_request(claim, request + 1);
  const bool has_distinct =  // what is refused now may be possible once others are given back
      constraints_ == Constraints::apply &&
      std::ranges::any_of(claims_[kind.claim].constraints,
                          [](const ClaimConstraint& one) { return !one.distinct_attribute.empty(); });
  std::vector<std::size_t> fitting;
  for (std::size_t i = start; i < stocks_.devices.size(); ++i) {
    Chosen one = kind;
    one.device = i;
    if (is_usable(one) && (has_distinct || broken_by(one) == nullptr)) fitting.push_back(i);
  }
  for (std::size_t i = 0; i + static_cast<std::size_t>(missing) <= fitting.size(); ++i) {
    if (++steps_ > kMostSteps) return false;
    Chosen one = kind;
    one.device = fitting[i];
    if (has_distinct && broken_by(one) != nullptr) continue;
    take(one);
    if (choose(claim, request, kind, missing - 1, fitting[i] + 1)) return true;
    give_back();
    if (against_all_ != nullptr || over_limit_ > 0) return false;
  }
  return false;
}

bool DeviceSearch::take_all(std::size_t claim, std::size_t request, const Chosen& kind) {
  const std::size_t before = chosen_.size();
  const bool is_whole = std::ranges::all_of(stocks_.counters, [](const auto& pool) { return pool.first->complete; });
  bool good = is_whole && !members(*kind.wish).empty();
  for (const std::size_t i : members(*kind.wish)) {
    Chosen one = kind;
    one.device = i;
    good = good && is_usable(one);
    against_all_ = good ? broken_by(one) : nullptr;
    if (!good || against_all_ != nullptr) break;
    take(one);
  }
  if (good && against_all_ == nullptr && next_request(claim, request + 1)) return true;
  while (chosen_.size() > before) give_back();
  return false;
}

bool DeviceSearch::is_usable(const Chosen& one) {
  const Stock& stock = stocks_.devices[one.device];
  if (matches(*one.wish)[one.device].match != Match::yes || state_of(*one.wish, stock) != Fitness::free) return false;
  return std::ranges::none_of(chosen_, [&](const Chosen& other) {
    if (other.device != one.device) return false;
    if (stock.device->multiple) return other.wish == one.wish;
    return !one.wish->admin_access || other.claim == one.claim;
  });
}

const ClaimConstraint* DeviceSearch::broken_by(const Chosen& one) const {
  if (constraints_ == Constraints::ignore) return nullptr;
  for (const ClaimConstraint& constraint : claims_[one.claim].constraints) {
    if (!is_about(constraint, one.request)) continue;
    const bool match = !constraint.match_attribute.empty();
    const std::string& name = match ? constraint.match_attribute : constraint.distinct_attribute;
    const AttributeValue* own = attribute(stocks_.devices[one.device], name);
    if (own == nullptr) return &constraint;
    if (!match) {
      const bool is_repeated = std::ranges::any_of(distinct_, [&](const auto& taken) {
        return taken.first.first == &constraint && is_same(*own, *taken.second);
      });
      if (is_repeated) return &constraint;
      continue;
    }
    for (const Chosen& other : chosen_) {
      if (other.claim != one.claim || !is_about(constraint, other.request)) continue;
      const AttributeValue* theirs = attribute(stocks_.devices[other.device], name);
      if (theirs == nullptr || !is_same(*own, *theirs)) return &constraint;
    }
  }
  return nullptr;
}

void DeviceSearch::note_distinct(const Chosen& one, bool is_taken) {
  if (constraints_ == Constraints::ignore) return;
  for (const ClaimConstraint& constraint : claims_[one.claim].constraints) {
    if (constraint.distinct_attribute.empty() || !is_about(constraint, one.request)) continue;
    const std::pair key(&constraint, one.request.substr(0, one.request.find('/')));
    distinct_.erase(key);
    if (is_taken) distinct_[key] = attribute(stocks_.devices[one.device], constraint.distinct_attribute);
  }
}

void DeviceSearch::change_counters(const Stock& stock, std::int64_t sign) {
  for (const auto& [set, uses] : stock.device->consumes) {
    for (const auto& [name, text] : uses) {
      stocks_.counters[stock.pool][set][name] -= sign * kube::parse_quantity(text).value_or(0);
    }
  }
}

void DeviceSearch::take(const Chosen& one) {
  Stock& stock = stocks_.devices[one.device];
  chosen_.push_back(one);
  note_distinct(one, true);
  const auto used = consumption(*one.wish, *stock.pool, *stock.device);
  if (stock.device->multiple && used) {
    for (const auto& [name, amount] : *used) stock.consumed[name] += amount;
  }
  change_counters(stock, 1);
}

void DeviceSearch::give_back() {
  const Chosen one = chosen_.back();
  chosen_.pop_back();
  note_distinct(one, false);
  Stock& stock = stocks_.devices[one.device];
  const auto used = consumption(*one.wish, *stock.pool, *stock.device);
  if (stock.device->multiple && used) {
    for (const auto& [name, amount] : *used) stock.consumed[name] -= amount;
  }
  change_counters(stock, -1);
}

}  // namespace neuron::fleet
