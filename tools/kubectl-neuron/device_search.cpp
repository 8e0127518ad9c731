#include "tools/kubectl-neuron/device_search.h"

#include <algorithm>
#include <utility>

#include "agent/kube/answers.h"

namespace neuron::fleet {
namespace {

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

std::int64_t left_of(const std::map<std::string, std::map<std::string, std::int64_t>>& sets, const std::string& set,
                     const std::string& counter) {
  const auto counters = sets.find(set);
  if (counters == sets.end()) return 0;
  const auto left = counters->second.find(counter);
  return left == counters->second.end() ? 0 : left->second;
}

bool endures(const ClaimRequest& wish, const Taint& taint) {
  return taint.effect != "NoSchedule" && taint.effect != "NoExecute" ? true : tolerates(wish.tolerations, taint);
}

}  // namespace

DeviceSearch::DeviceSearch(const Fleet& fleet, const NodeState& state, std::vector<WantedClaim> claims, Effort* effort)
    : fleet_(fleet), stocks_(stocks_of(state)), claims_(std::move(claims)), effort_(effort) {}

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
      if (is_late()) all = {Match::no, ""};
      if (was_cut_) break;
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
      if (amount_of(text) > left_of(counters->second, set, name)) return Fitness::counters;
    }
  }
  return tainted ? Fitness::tainted : Fitness::free;
}

std::vector<Rated> DeviceSearch::rate(const ClaimRequest& request) {
  std::vector<Rated> all;
  if (is_late()) return all;
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
  if (!is_new || is_late()) return at->second;
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

// Without requests for all and alternatives nothing else can end the search first.
bool DeviceSearch::is_short() {
  const auto is_plain = [](const ClaimRequest& one) { return !one.all && one.first_available.empty(); };
  const auto are_plain = [&](const WantedClaim& claim) { return std::ranges::all_of(claim.requests, is_plain); };
  if (!std::ranges::all_of(claims_, are_plain)) return false;
  for (std::size_t claim = 0; claim < claims_.size(); ++claim) {
    for (const ClaimRequest& request : claims_[claim].requests) {
      if (is_late()) return false;
      std::int64_t usable = 0;
      for (std::size_t i = 0; i < stocks_.devices.size(); ++i) {
        const Chosen one{claim, i, request.name, &request};
        if (is_usable(one)) ++usable;
      }
      if (usable < request.count) return true;
    }
  }
  return false;
}

bool DeviceSearch::is_late() {
  was_cut_ = was_cut_ || is_over(effort_);
  return was_cut_;
}

// A step takes as long as all devices of the node are many: the clock is asked each time.
bool DeviceSearch::is_step_too_many() {
  ++steps_;
  if (is_late()) steps_ = kMostSteps + 1;
  return steps_ > kMostSteps;
}

DeviceSearch::Outcome DeviceSearch::run(Constraints constraints) {
  begin(constraints);
  // This reads all members() as well, while nothing is chosen.
  for (const WantedClaim& claim : claims_) over_limit_ = std::max(over_limit_, excess_of(claim));
  const bool is_impossible = over_limit_ > 0 || is_short();
  if (was_cut_) return Outcome::gave_up;
  if (is_impossible) return Outcome::none;
  return ended(next_request(0, 0));
}

DeviceSearch::Outcome DeviceSearch::ended(bool found) const {
  if (was_cut_ || (!found && steps_ > kMostSteps)) return Outcome::gave_up;
  return found ? Outcome::found : Outcome::none;
}

DeviceSearch::Outcome DeviceSearch::run_alone(const ClaimRequest& request) {
  begin(Constraints::ignore);
  // Beyond the last claim: nothing follows.
  return ended(fill(claims_.size(), 0, request, request.name));
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
    if (is_step_too_many()) return false;
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
    if (is_step_too_many()) return false;
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
  if (is_step_too_many()) return false;
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
      stocks_.counters[stock.pool][set][name] -= sign * amount_of(text);
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
