#include "agent/daemon/holders.h"

#include <spdlog/spdlog.h>

#include "plugin/checkpoint.h"

namespace neuron::daemon {

void Holders::set_listed(const std::vector<rpc::PodDevices>& listed, SteadyTime asked_at) {
  std::vector<plugin::ShownHolding> shown;
  for (const rpc::PodDevices& one : listed) {
    shown.push_back({one.resource_name, one.ids, one.pod_namespace + "/" + one.pod + "/" + one.container});
  }
  listed_ = std::move(shown);
  asked_at_ = asked_at;
}

std::optional<plugin::ShownHoldings> Holders::merged() {
  auto stored = plugin::read_checkpoint(checkpoint_path_);
  unlisted_.clear();
  if (!stored && stored.error().code != ErrorCode::not_found) {
    if (stored.error().message != error_) spdlog::warn("checkpoint error=\"{}\"", stored.error().message);
    error_ = stored.error().message;
  }
  if (!stored && !listed_) return std::nullopt;
  plugin::ShownHoldings all{listed_.value_or(std::vector<plugin::ShownHolding>{}), asked_at_, {}, 0};
  if (!stored) return all;
  std::set<std::pair<std::string, std::string>> shown;  // (resource, id)
  for (const auto& one : all.listed) {
    for (const std::string& id : one.ids) shown.insert({one.resource_name, id});
  }
  for (plugin::ShownHolding& entry : stored->holdings) {
    std::erase_if(entry.ids, [&](const std::string& id) { return shown.contains({entry.resource_name, id}); });
    if (entry.ids.empty()) continue;
    std::string key = entry.holder + " " + entry.resource_name;
    for (const std::string& id : entry.ids) key += " " + id;
    unlisted_.insert(std::move(key));
    all.stored.push_back(std::move(entry));
  }
  all.stored_mark = stored->mark;
  return all;
}

bool Holders::wants_fresh_checkpoint() {
  constexpr int kMost = 2;
  if (!listed_) return false;
  std::erase_if(asked_about_, [&](const auto& asked) { return !unlisted_.contains(asked.first); });
  bool wanted = false;
  for (const std::string& entry : unlisted_) {
    int& times = asked_about_[entry];
    wanted = wanted || times < kMost;
    ++times;
  }
  return wanted;
}

}  // namespace neuron::daemon
