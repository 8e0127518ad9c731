#include "plugin/device/ledger.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "agent/base/sorted.h"

namespace neuron::plugin {
namespace {

bool same_container(const Holding& a, const Holding& b) {
  return (!a.holder.empty() && a.holder == b.holder) || (a.version != 0 && a.version == b.version);
}

using Units = std::set<std::pair<model::Resource, int>>;

void add_units(Units& units, const Holding& holding) {
  for (const int unit : holding.units) units.emplace(holding.resource, unit);
}

// Some unit of the holding is in `units`.
bool overlaps(const Holding& holding, const Units& units) {
  return std::any_of(holding.units.begin(), holding.units.end(), [&](int unit) {
    return units.contains({holding.resource, unit});
  });
}

// Of more than any node has, only what covers a unit that nothing before it does: no unit in use is forgotten.
std::vector<Holding> bounded(std::vector<Holding> shown) {
  if (shown.size() <= Ledger::kMostShown) return shown;
  Units covered;
  std::size_t position = 0;
  std::erase_if(shown, [&](const Holding& holding) {
    bool covers = false;
    for (const int unit : holding.units) covers = covered.emplace(holding.resource, unit).second || covers;
    return ++position > Ledger::kMostShown && !covers;
  });
  return shown;
}

// A checkpoint of that time may have been collected before the holding was given.
bool may_be_older(SteadyTime written_at, const Holding& than) {
  return written_at <= than.since + Ledger::kMaxWriteDelay;
}

// The rest of a holding without the hardware and interfaces of `given`.
Holding rest_of(Holding old, const Holding& given) {
  const bool had_cores = !old.cores.empty();
  old.cores = without(old.cores, given.cores);
  if (old.resource == given.resource) {
    old.units = without(old.units, given.units);
  } else if (old.resource == model::Resource::neuroncore) {
    old.units = old.cores;
  }
  if (had_cores && old.cores.empty()) old.units.clear();
  return old;
}

}  // namespace

std::string Conflict::describe() const {
  const std::string& known = with.shown_as.empty() ? with.holder : with.shown_as;
  return "core " + std::to_string(core) + " is held by " +
         (known.empty() ? "a container admitted moments ago" : known) + " through " +
         (with.claim.empty() ? std::string(model::resource_name(with.resource)) : "claim " + with.claim);
}

std::vector<bool> Ledger::ended_when_given(model::Resource resource, const std::vector<int>& units,
                                           SteadyTime settled) const {
  std::vector<bool> over(holdings_.size(), false);
  std::set<std::string_view> holders;
  std::map<CheckpointVersion, SteadyTime> versions;  // with the youngest ended holding under each
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    const Holding& held = holdings_[i];
    if (held.resource != resource || held.since >= settled || common(held.units, units).empty()) continue;
    over[i] = true;
    if (!held.holder.empty()) holders.insert(held.holder);
    if (held.version != 0) versions[held.version] = std::max(versions[held.version], held.since);
  }
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    // A pod that the kubelet refused leaves its version to the next container, so a version speaks only for what is
    // older.
    const auto version = versions.find(holdings_[i].version);
    const bool same_admission = version != versions.end() && holdings_[i].since <= version->second;
    if (same_admission || holders.contains(holdings_[i].holder)) over[i] = true;
  }
  return over;
}

void Ledger::available(model::Resource resource, const std::vector<int>& units, SteadyTime settled, SteadyTime now) {
  for (Holding& held : holdings_) {
    if (held.given_during_list && held.resource == resource && !common(held.units, units).empty())
      held.available = true;
  }
  const std::vector<bool> over = ended_when_given(resource, without(units, maybe_given(resource)), settled);
  std::size_t position = 0;
  std::erase_if(holdings_, [&](const Holding& held) {
    if (!over[position++]) return false;
    for (const int unit : held.units) available_since_[{held.resource, unit}] = now;
    return true;
  });
}

void Ledger::forget_admission(CheckpointVersion version) {
  if (version == 0) return;
  std::erase_if(holdings_, [version](const Holding& held) { return held.version == version; });
}

void Ledger::confirm(const std::vector<Holding>& written, SteadyTime written_at) {
  Units held;
  for (const Holding& one : written) add_units(held, one);
  for (Holding& holding : holdings_) {
    holding.doubtful = std::any_of(holding.units.begin(), holding.units.end(), [&](int unit) {
      return !held.contains({holding.resource, unit});
    });
  }
  std::erase_if(holdings_,
                [&](const Holding& holding) { return holding.doubtful && !may_be_older(written_at, holding); });
}

SteadyTime Ledger::decided_at() const {
  constexpr std::chrono::milliseconds kFileTimeLag{20};  // the kernel's time of files: at most two of its ticks
  SteadyTime latest{};
  for (const Holding& holding : holdings_) {
    if (holding.doubtful) latest = std::max(latest, holding.since + kMaxWriteDelay + kFileTimeLag);
  }
  return latest;
}

void Ledger::admission_goes_on(CheckpointVersion before, CheckpointVersion now) {
  for (Holding& holding : holdings_) {
    if (before != 0 && holding.version == before) holding.version = now;
  }
}

void Ledger::record(Holding holding) {
  const std::vector<bool> over = ended_when_given(holding.resource, holding.units);
  std::vector<Holding> kept;
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    Holding& old = holdings_[i];
    const bool other_container = !same_container(old, holding) || old.resource == holding.resource;
    if (over[i] && other_container) {
      if (old.since + kMaxAdmission <= holding.since) continue;
      old = rest_of(std::move(old), holding);
      if (old.units.empty()) continue;
    }
    kept.push_back(std::move(old));
  }
  kept.push_back(std::move(holding));
  holdings_ = std::move(kept);
}

std::vector<Holding> Ledger::not_outdated(const Shown& shown, std::vector<Holding>& outdated) const {
  std::vector<Holding> current, outdated_in_store;
  const auto take = [&](const std::vector<Holding>& source, std::vector<Holding>& others, const auto& is_newer) {
    Units given;
    for (const Holding& own : holdings_) {
      if (is_newer(own)) add_units(given, own);
    }
    std::set<std::string_view> over;
    for (const Holding& seen : source) {
      if (overlaps(seen, given)) over.insert(seen.holder);
    }
    for (const Holding& seen : source) {
      (over.contains(seen.holder) ? others : current).push_back(seen);
    }
  };
  take(shown.listed, outdated, [&](const Holding& own) { return own.since > shown.asked_at; });
  std::set<std::string> ended;  // the kubelet has passed their units as available since it was asked
  for (const Holding& seen : current) {
    const bool over = std::any_of(seen.units.begin(), seen.units.end(), [&](int unit) {
      return available_since_.contains({seen.resource, unit});
    });
    if (over) ended.insert(seen.holder);
  }
  std::erase_if(current, [&](const Holding& seen) { return ended.contains(seen.holder); });
  take(shown.stored, outdated_in_store,
       [&](const Holding& own) { return own.version != 0 && own.version == shown.stored_version; });
  return bounded(std::move(current));
}

void Ledger::reconcile(const Shown& shown) {
  std::erase_if(available_since_, [&](const auto& unit) { return unit.second <= shown.asked_at; });
  using Key = std::pair<model::Resource, std::vector<int>>;
  std::map<Key, const Holding*> known;  // the newest holding of each
  for (const Holding& old : holdings_) known[{old.resource, old.units}] = &old;
  std::set<Key> seen;
  std::vector<Holding> outdated;
  std::vector<Holding> kept = not_outdated(shown, outdated);
  for (Holding& one : kept) {
    const Key key{one.resource, one.units};
    if (const auto old = known.find(key); old != known.end()) {
      one.version = old->second->version;
      one.since = old->second->since;
      one.given_during_list = old->second->given_during_list;
      one.available = old->second->available;
    }
    seen.insert(key);
  }
  std::set<Key> undecided;
  for (const Holding& one : outdated) undecided.emplace(one.resource, one.units);
  for (const Holding& old : holdings_) {
    // A newer answer of other units is another container's, even if it overlaps: an init container's devices are used
    // again.
    // Until the kubelet has written its checkpoint the container may still be asking for more, and is shown nowhere.
    const bool unwritten = old.version != 0 && old.version == shown.stored_version;
    const bool in_transit = old.holder.empty() && old.since + kAnswerTransit >= shown.asked_at;
    const bool undecided_yet = undecided.contains({old.resource, old.units});
    const bool too_early = old.since >= shown.asked_at || in_transit || unwritten || undecided_yet;
    const bool overtaken = !too_early && may_be_older(shown.written_at, old);
    if (!(too_early || overtaken) || seen.contains({old.resource, old.units})) continue;
    kept.push_back(old);
    // A question that is too early to decide, as while List fails, does not take back what the checkpoint said.
    kept.back().left_out = overtaken || old.left_out;
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Holding& a, const Holding& b) { return a.since < b.since; });
  holdings_ = std::move(kept);
}

bool Ledger::needs_newer_checkpoint() const {
  return std::any_of(holdings_.begin(), holdings_.end(), [](const Holding& holding) { return holding.left_out; });
}

void Ledger::list_asked(SteadyTime asked_at) {
  for (Holding& held : holdings_)
    held.given_during_list = held.given_during_list || held.since + kAnswerTransit >= asked_at;
}

std::vector<int> Ledger::maybe_given(model::Resource resource) const {
  std::vector<int> units;
  for (const Holding& held : holdings_) {
    if (held.given_during_list && held.resource == resource) units = merged(units, held.units);
  }
  return units;
}

const Holding* Ledger::available_though_given(model::Resource resource, const std::vector<int>& units) const {
  const auto found = std::find_if(holdings_.begin(), holdings_.end(), [&](const Holding& held) {
    return held.available && held.resource == resource && !common(held.units, units).empty();
  });
  return found == holdings_.end() ? nullptr : &*found;
}

void Ledger::set_claimed(std::vector<Holding> claimed) {
  claimed_ = bounded(std::move(claimed));
}

const Holding* Ledger::claim_of_efa(int unit) const {
  const auto found = std::find_if(claimed_.begin(), claimed_.end(), [unit](const Holding& holding) {
    return holding.resource == model::Resource::efa && is_in(unit, holding.units);
  });
  return found == claimed_.end() ? nullptr : &*found;
}

void Ledger::renumber(model::Resource resource, const std::function<std::optional<int>(int)>& number_of) {
  std::erase_if(available_since_, [&](const auto& unit) { return unit.first.first == resource; });
  for (std::vector<Holding>* all : {&holdings_, &claimed_}) {
    for (Holding& held : *all) {
      if (held.resource != resource) continue;
      std::vector<int> units;
      for (const int unit : held.units) {
        if (const auto number = number_of(unit)) units.push_back(*number);
      }
      std::sort(units.begin(), units.end());
      held.units = std::move(units);
    }
  }
}

std::optional<Conflict> Ledger::conflict(model::Resource resource, const std::vector<int>& units,
                                         const std::vector<int>& cores, CheckpointVersion version) const {
  std::optional<Conflict> first;
  const auto consider = [&](const Holding& holding) {
    const std::vector<int> both = common(holding.cores, cores);
    if (!both.empty() && (!first || both.front() < first->core)) first = Conflict{both.front(), holding};
  };
  const std::vector<bool> over = ended_when_given(resource, units);
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    const Holding& holding = holdings_[i];
    if (over[i] || holding.resource == resource || (version != 0 && holding.version == version)) continue;
    consider(holding);
  }
  for (const Holding& holding : claimed_) consider(holding);
  return first;
}

const Holding* Ledger::of_admission(model::Resource resource, CheckpointVersion version, bool of_cores) const {
  if (version == 0) return nullptr;
  const Holding* found = nullptr;
  for (const Holding& holding : holdings_) {
    if (holding.version != version) continue;
    if (holding.resource == resource) {
      found = nullptr;  // of a pod that was refused since: what comes after it may be the asking container's
    } else if (model::has_cores(holding.resource) == of_cores) {
      found = &holding;
    }
  }
  return found;
}

const Holding* Ledger::cores_of_admission(model::Resource resource, CheckpointVersion version) const {
  return of_admission(resource, version, true);
}

const Holding* Ledger::efas_of_admission(model::Resource resource, CheckpointVersion version) const {
  return of_admission(resource, version, false);
}

std::vector<int> Ledger::held_units(model::Resource resource) const {
  std::set<int> held;
  for (const Holding& holding : holdings_) {
    if (holding.resource == resource) held.insert(holding.units.begin(), holding.units.end());
  }
  return {held.begin(), held.end()};
}

std::vector<int> Ledger::blocked_cores(model::Resource resource) const {
  std::set<int> blocked;
  for (const Holding& holding : holdings_) {
    if (holding.resource != resource) blocked.insert(holding.cores.begin(), holding.cores.end());
  }
  for (const Holding& holding : claimed_) blocked.insert(holding.cores.begin(), holding.cores.end());
  const auto held_by_another = [&](int core, const Holding& holding) {
    return std::any_of(holdings_.begin(), holdings_.end(), [&](const Holding& other) {
      return other.resource != resource && !same_container(other, holding) && is_in(core, other.cores);
    });
  };
  for (const Holding& holding : holdings_) {
    if (holding.resource != resource) continue;
    for (const int core : holding.cores) {
      if (!holding.left_out || !held_by_another(core, holding)) blocked.erase(core);
    }
  }
  return {blocked.begin(), blocked.end()};
}

}  // namespace neuron::plugin
