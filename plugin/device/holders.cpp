#include "plugin/device/holders.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace neuron::plugin {

void Holders::set_listed(const std::vector<rpc::PodDevices>& listed, SteadyTime asked_at) {
  std::vector<holdings::ShownHolding> shown;
  std::set<std::string> pods;
  for (const rpc::PodDevices& one : listed) {
    const std::string pod = one.pod_namespace + "/" + one.pod;
    pods.insert(pod);
    if (one.ids.empty()) continue;
    shown.push_back({one.resource_name, one.ids, pod + "/" + one.container});
    pods.insert(shown.back().holder + " " + one.resource_name);
  }
  if (!std::includes(pods.begin(), pods.end(), pods_.begin(), pods_.end())) asked_about_.clear();
  pods_ = std::move(pods);
  listed_ = std::move(shown);
  asked_at_ = asked_at;
}

const StoredHoldings* Holders::stored() {
  if (stored_ && stored_->mark == checkpoint_mark(checkpoint_path_)) return &*stored_;
  auto read = read_checkpoint(checkpoint_path_);
  if (read) {
    error_.clear();
    stored_ = *std::move(read);
    return &*stored_;
  }
  stored_.reset();
  if (read.error().code != ErrorCode::not_found && read.error().message != error_) {
    spdlog::warn("checkpoint error=\"{}\"", read.error().message);
    error_ = read.error().message;
  }
  return nullptr;
}

std::optional<holdings::ShownHoldings> Holders::merged(SteadyTime now) {
  const StoredHoldings* const stored = this->stored();
  unlisted_.clear();
  source_ = listed_ ? (stored != nullptr ? Source::list_and_checkpoint : Source::list)
                    : (stored != nullptr ? Source::checkpoint : Source::nothing);
  if (source_ == Source::nothing) return std::nullopt;
  holdings::ShownHoldings all;
  if (listed_) all.listed = *listed_;
  // The checkpoint says nothing of a container that is being admitted.
  all.asked_at = listed_ ? asked_at_ : now - holdings::Ledger::kAdmission;
  all.stored_mark = stored != nullptr ? stored->mark : checkpoint_mark(checkpoint_path_);
  if (stored == nullptr) return all;
  std::set<std::pair<std::string, std::string>> shown;  // (resource, id)
  for (const auto& one : all.listed) {
    for (const std::string& id : one.ids) shown.insert({one.resource_name, id});
  }
  for (holdings::ShownHolding entry : stored->holdings) {
    std::erase_if(entry.ids, [&](const std::string& id) { return shown.contains({entry.resource_name, id}); });
    if (entry.ids.empty()) continue;
    std::string key = entry.holder + " " + entry.resource_name;
    for (const std::string& id : entry.ids) key += " " + id;
    unlisted_.insert(std::move(key));
    all.stored.push_back(std::move(entry));
  }
  return all;
}

bool Holders::wants_fresh_checkpoint(SteadyTime now) {
  constexpr int kMost = 2;
  std::erase_if(asked_about_, [&](const auto& asked) { return !unlisted_.contains(asked.first); });
  if (unlisted_.empty()) return false;
  bool wanted = now >= wanted_at_ + interval_;
  if (listed_) {
    for (const std::string& entry : unlisted_) {
      int& times = asked_about_[entry];
      wanted = wanted || times < kMost;
      ++times;
    }
  }
  if (wanted) wanted_at_ = now;
  return wanted;
}

}  // namespace neuron::plugin
