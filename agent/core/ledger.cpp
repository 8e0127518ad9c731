#include "agent/core/ledger.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace neuron::core {
namespace {

std::vector<int> common(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

bool same_container(const Holding& a, const Holding& b) {
  return (!a.holder.empty() && a.holder == b.holder) || (a.mark != 0 && a.mark == b.mark);
}

}  // namespace

std::string_view resource_name(SiliconResource resource) {
  switch (resource) {
    case SiliconResource::neuroncore:
      return "aws.amazon.com/neuroncore";
    case SiliconResource::neuron:
      return "aws.amazon.com/neuron";
    case SiliconResource::neurondevice:
      return "aws.amazon.com/neurondevice";
  }
  return "";
}

std::string Conflict::describe() const {
  const std::string holder = with.holder.empty() ? "a container admitted moments ago" : with.holder;
  return "core " + std::to_string(core) + " is held by " + holder + " through " +
         std::string(resource_name(with.resource));
}

std::vector<bool> Ledger::over_when_given(SiliconResource resource, const std::vector<int>& cores) const {
  std::vector<bool> over(holdings_.size(), false);
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    if (holdings_[i].resource != resource || common(holdings_[i].cores, cores).empty()) continue;
    over[i] = true;
    for (std::size_t k = 0; k < holdings_.size(); ++k) {
      if (same_container(holdings_[k], holdings_[i])) over[k] = true;
    }
  }
  return over;
}

void Ledger::record(Holding holding) {
  const std::vector<bool> over = over_when_given(holding.resource, holding.cores);
  std::vector<Holding> kept;
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    const bool other_container = !same_container(holdings_[i], holding) || holdings_[i].resource == holding.resource;
    if (!over[i] || !other_container) kept.push_back(std::move(holdings_[i]));
  }
  kept.push_back(std::move(holding));
  holdings_ = std::move(kept);
}

void Ledger::reconcile(const std::vector<Holding>& shown, SteadyTime asked_at) {
  std::vector<Holding> kept;
  for (const Holding& seen : shown) {
    kept.push_back(seen);
    for (const Holding& old : holdings_) {
      if (old.resource == seen.resource && old.cores == seen.cores) {
        kept.back().mark = old.mark;
        kept.back().since = old.since;
      }
    }
  }
  for (Holding& old : holdings_) {
    const bool is_shown = std::any_of(shown.begin(), shown.end(), [&](const Holding& seen) {
      return seen.resource == old.resource && !common(seen.cores, old.cores).empty();
    });
    if (!is_shown && old.since >= asked_at) kept.push_back(std::move(old));
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Holding& a, const Holding& b) { return a.since < b.since; });
  holdings_ = std::move(kept);
}

std::optional<Conflict> Ledger::conflict(SiliconResource resource, const std::vector<int>& cores,
                                         AdmissionMark mark) const {
  std::optional<Conflict> first;
  const std::vector<bool> over = over_when_given(resource, cores);
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    const Holding& holding = holdings_[i];
    if (over[i] || holding.resource == resource || (mark != 0 && holding.mark == mark)) continue;
    const std::vector<int> both = common(holding.cores, cores);
    if (!both.empty() && (!first || both.front() < first->core)) first = Conflict{both.front(), holding};
  }
  return first;
}

const Holding* Ledger::same_admission(SiliconResource resource, AdmissionMark mark) const {
  if (mark == 0) return nullptr;
  const Holding* found = nullptr;
  for (const Holding& holding : holdings_) {
    if (holding.mark != mark) continue;
    if (holding.resource == resource) return nullptr;
    found = &holding;
  }
  return found;
}

const Holding* Ledger::newest_of_admission(AdmissionMark mark) const {
  if (mark == 0 || holdings_.empty()) return nullptr;
  return holdings_.back().mark == mark ? &holdings_.back() : nullptr;
}

std::vector<int> Ledger::blocked_cores(SiliconResource resource) const {
  std::set<int> blocked;
  for (const Holding& other : holdings_) {
    if (other.resource == resource) continue;
    std::set<int> own;
    for (const Holding& mine : holdings_) {
      if (mine.resource == resource && same_container(mine, other)) own.insert(mine.cores.begin(), mine.cores.end());
    }
    for (const int core : other.cores) {
      if (!own.contains(core)) blocked.insert(core);
    }
  }
  return {blocked.begin(), blocked.end()};
}

}  // namespace neuron::core
