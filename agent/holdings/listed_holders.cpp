#include "agent/holdings/listed_holders.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace neuron::holdings {

void ListedHolders::add(std::vector<model::Allocation> held) {
  for (model::Allocation& one : held) {
    held_.push_back(std::move(one));
    missing_since_.emplace_back();
  }
}

void ListedHolders::set_listed(const std::vector<model::Allocation>& answer, const IsKept& is_kept,
                               SteadyTime asked_at) {
  if (!answer.empty() && !first_pods_at_) first_pods_at_ = asked_at;
  const bool shows_own_pod =
      std::any_of(answer.begin(), answer.end(), [&](const model::Allocation& one) { return one.pod == own_pod_; });
  own_pod_seen_ = own_pod_seen_ || shows_own_pod;
  if (!own_pod_seen_ && first_pods_at_ && asked_at >= *first_pods_at_ + kOwnPodDue) own_pod_.clear();
  whole_ = own_pod_.empty() || shows_own_pod;
  const auto apart = own_pod_.empty() ? kApartBlind : kApart;

  std::vector<model::Allocation> held;
  std::copy_if(answer.begin(), answer.end(), std::back_inserter(held),
               [&](const model::Allocation& one) { return !one.admin_access && is_kept(one); });
  std::vector<std::optional<SteadyTime>> missing_since(held.size());
  std::set<std::pair<std::string_view, std::string_view>> shown;
  for (const model::Allocation& one : answer) {
    if (one.admin_access) continue;
    for (const std::string& id : one.ids) shown.emplace(one.resource_name, id);
  }
  listed_ = held.size();
  for (std::size_t i = 0; i < held_.size(); ++i) {
    model::Allocation& old = held_[i];
    std::erase_if(old.ids, [&](const std::string& id) { return shown.contains({old.resource_name, id}); });
    if (old.ids.empty()) continue;
    std::optional<SteadyTime> since = missing_since_[i];
    if (whole_ && since && asked_at >= *since + apart) continue;
    if (whole_ && !since) since = asked_at;
    held.push_back(std::move(old));
    missing_since.push_back(since);
  }
  held_ = std::move(held);
  missing_since_ = std::move(missing_since);
}

bool ListedHolders::in_doubt() const {
  return held_.size() > listed_;
}

}  // namespace neuron::holdings
