#include "plugin/device/holders.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace neuron::plugin {
namespace {

// "pod <uid>/<container>", as the checkpoint's holders read.
std::pair<std::string, std::string> parts_of(const std::string& holder) {
  const auto slash = holder.rfind('/');  // no container has one in its name
  return {holder.substr(0, slash), slash == std::string::npos ? "" : holder.substr(slash + 1)};
}

}  // namespace

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
  learn_names(listed);
}

void Holders::learn_names(const std::vector<rpc::PodDevices>& listed) {
  const StoredHoldings* const stored = this->stored();
  if (stored == nullptr) return;
  std::map<std::tuple<std::string, std::string, std::string>, std::string> pods;  // of (resource, id, container)
  for (const rpc::PodDevices& one : listed) {
    for (const std::string& id : one.ids)
      pods[{one.resource_name, id, one.container}] = one.pod_namespace + "/" + one.pod;
  }
  std::map<std::string, std::string> names;
  for (const holdings::ShownHolding& entry : stored->holdings) {
    const auto [uid, container] = parts_of(entry.holder);
    if (const auto before = names_.find(uid); before != names_.end()) names.insert(*before);
    const auto found = entry.ids.empty() ? pods.end() : pods.find({entry.resource_name, entry.ids.front(), container});
    if (found != pods.end()) names[uid] = found->second;
  }
  names_ = std::move(names);
}

const StoredHoldings* Holders::stored() {
  if (stored_ && stored_->version == checkpoint_.version()) return &*stored_;
  auto read = checkpoint_.read();
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
  all.stored_version = stored != nullptr ? stored->version : checkpoint_.version();
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
    const auto [uid, container] = parts_of(entry.holder);
    if (const auto name = names_.find(uid); name != names_.end()) entry.shown_as = name->second + "/" + container;
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
