#include "agent/daemon/holders.h"

#include <spdlog/spdlog.h>

#include <algorithm>

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

std::optional<std::vector<plugin::ShownHolding>> Holders::merged() {
  auto stored = plugin::read_checkpoint(checkpoint_path_);
  unlisted_.clear();
  if (!stored) {
    if (stored.error().code != ErrorCode::not_found) spdlog::warn("checkpoint error=\"{}\"", stored.error().message);
    return listed_;
  }
  std::vector<plugin::ShownHolding> all = listed_.value_or(std::vector<plugin::ShownHolding>{});
  std::set<std::pair<std::string, std::string>> shown;  // (resource, id)
  for (const auto& one : all) {
    for (const std::string& id : one.ids) shown.insert({one.resource_name, id});
  }
  for (plugin::ShownHolding& entry : *stored) {
    std::erase_if(entry.ids, [&](const std::string& id) { return shown.contains({entry.resource_name, id}); });
    if (entry.ids.empty()) continue;
    std::string key = entry.holder + " " + entry.resource_name;
    for (const std::string& id : entry.ids) key += " " + id;
    unlisted_.insert(std::move(key));
    all.push_back(std::move(entry));
  }
  return all;
}

bool Holders::wants_fresh_checkpoint() {
  if (!listed_ || unlisted_.empty() ||
      std::includes(asked_about_.begin(), asked_about_.end(), unlisted_.begin(), unlisted_.end())) {
    return false;
  }
  asked_about_ = unlisted_;
  return true;
}

}  // namespace neuron::daemon
