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
    case SiliconResource::neuroncore: return "aws.amazon.com/neuroncore";
    case SiliconResource::neuron: return "aws.amazon.com/neuron";
    case SiliconResource::neurondevice: return "aws.amazon.com/neurondevice";
  }
  return "";
}

std::string Conflict::describe() const {
  const std::string holder = with.holder.empty() ? "a container admitted moments ago" : with.holder;
  return "core " + std::to_string(core) + " is held by " + holder + " through " +
         std::string(resource_name(with.resource));
}

void Ledger::record(Holding holding) {
  std::erase_if(holdings_, [&](const Holding& old) {
    return old.resource == holding.resource && !common(old.cores, holding.cores).empty();
  });
  holdings_.push_back(std::move(holding));
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
  for (const Holding& holding : holdings_) {
    if (holding.resource == resource || (mark != 0 && holding.mark == mark)) continue;
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
