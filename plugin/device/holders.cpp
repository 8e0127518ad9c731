#include "plugin/device/holders.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace neuron::plugin {
namespace {

bool is_claim(const model::Allocation& one) {
  return !one.claim.empty();
}

}  // namespace

void Holders::set_listed(std::vector<model::Allocation> listed, SteadyTime asked_at) {
  claims_.set_listed(listed, is_claim, asked_at);
  std::set<std::string> pods;
  for (const model::Allocation& one : listed) {
    pods.insert(one.pod_namespace + "/" + one.pod);
    if (!one.ids.empty() && !is_claim(one)) pods.insert(model::holder_of(one) + " " + one.resource_name);
  }
  if (!std::includes(pods.begin(), pods.end(), pods_.begin(), pods_.end())) asked_about_.clear();
  pods_ = std::move(pods);
  std::erase_if(listed, [](const model::Allocation& one) { return one.ids.empty() || is_claim(one); });
  asked_at_ = asked_at;
  learn_names(listed);
  listed_ = std::move(listed);
}

void Holders::learn_names(const std::vector<model::Allocation>& listed) {
  const Checkpoint* const stored = this->stored(asked_at_);
  if (stored == nullptr) return;
  std::map<std::tuple<std::string, std::string, std::string>, const model::Allocation*>
      shown;  // by resource, id, container
  for (const model::Allocation& one : listed) {
    for (const std::string& id : one.ids) shown[{one.resource_name, id, one.container}] = &one;
  }
  decltype(names_) names;
  for (const model::Allocation& entry : stored->allocations) {
    if (const auto before = names_.find(entry.pod_uid); before != names_.end()) names.insert(*before);
    const auto found = shown.find({entry.resource_name, entry.ids.front(), entry.container});
    if (found != shown.end()) names[entry.pod_uid] = {found->second->pod_namespace, found->second->pod};
  }
  names_ = std::move(names);
}

const Checkpoint* Holders::stored(SteadyTime now) {
  if (stored_ && !stored_hangs_ && stored_->version == checkpoint_.version()) {
    stored_at_ = now;
    return &*stored_;
  }
  auto read = checkpoint_.read();
  stored_hangs_ = !read && read.error().code == ErrorCode::deadline_exceeded;
  if (read) {
    if (!error_.empty()) spdlog::info("checkpoint readable again");
    error_.clear();
    if (!stored_ || stored_->version != read->version) stored_since_ = now;
    stored_ = *std::move(read);
    stored_at_ = now;
    return &*stored_;
  }
  if (!stored_hangs_) stored_.reset();
  if (read.error().code != ErrorCode::not_found && read.error().message != error_) {
    spdlog::warn("checkpoint not readable: {}", read.error().message);
    error_ = read.error().message;
  }
  return stored_ ? &*stored_ : nullptr;
}

std::optional<holdings::ShownAllocations> Holders::merged(SteadyTime now) {
  const Checkpoint* const stored = this->stored(now);
  unlisted_.clear();
  if (stored != nullptr) {
    source_ = listed_ ? Source::list_and_checkpoint : Source::checkpoint;
  } else {
    source_ = listed_ && list_is_whole() ? Source::list : Source::nothing;
  }
  if (source_ == Source::nothing) return std::nullopt;
  holdings::ShownAllocations all;
  if (listed_) all.listed = *listed_;
  all.claims = claims_.held();
  // The checkpoint says nothing of a container that is being admitted.
  all.asked_at = listed_ ? asked_at_ : now - holdings::Ledger::kMaxAdmission;
  all.stored_version = stored != nullptr ? stored->version : checkpoint_.version();
  if (stored == nullptr) return all;
  all.stored_since = stored_since_;
  if (stored_hangs_) all.asked_at = std::min(all.asked_at, stored_at_);  // it says nothing of who came since
  all.numbering = stored->numbering;
  std::set<std::pair<std::string, std::string>> shown;  // (resource, id)
  for (const auto& one : all.listed) {
    for (const std::string& id : one.ids) shown.insert({one.resource_name, id});
  }
  for (model::Allocation entry : stored->allocations) {
    std::erase_if(entry.ids, [&](const std::string& id) { return shown.contains({entry.resource_name, id}); });
    if (entry.ids.empty()) continue;
    std::string key = model::holder_of(entry) + " " + entry.resource_name;
    for (const std::string& id : entry.ids) key += " " + id;
    unlisted_.insert(std::move(key));
    if (const auto name = names_.find(entry.pod_uid); name != names_.end()) {
      std::tie(entry.pod_namespace, entry.pod) = name->second;
    }
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
