#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/rpc/pod_resources.h"
#include "plugin/allocation_desk.h"

namespace neuron::daemon {

// Who holds what, put together from its two sources: PodResources names pods but leaves out plain init containers; the
// checkpoint has every container but only as of its last write. One thread.
class Holders {
 public:
  explicit Holders(std::string checkpoint_path) : checkpoint_path_(std::move(checkpoint_path)) {}

  // The kubelet's newest List, asked at `asked_at`.
  void set_listed(const std::vector<rpc::PodDevices>& listed, SteadyTime asked_at);

  // What is shown as of the newest List, the checkpoint read now; the checkpoint alone until there was a List.
  // nullopt: neither source could be read.
  [[nodiscard]] std::optional<plugin::ShownHoldings> merged();

  // After a List: true when the checkpoint has entries that it does not show, ended pods or init containers. A
  // ListAndWatch message makes the kubelet write the checkpoint anew, which tells the two apart. Twice per entry, as
  // the first time may come too soon: the kubelet forgets an ended pod at a List that follows.
  [[nodiscard]] bool wants_fresh_checkpoint();
  void kubelet_is_new() { asked_about_.clear(); }  // what was asked of its predecessor has no answer

 private:
  std::string checkpoint_path_;
  std::string error_;  // as last logged
  std::optional<std::vector<plugin::ShownHolding>> listed_;
  SteadyTime asked_at_{};
  std::set<std::string> unlisted_;          // entries found in the checkpoint only, at the last merge
  std::map<std::string, int> asked_about_;  // how often a fresh checkpoint was asked for because of each
};

}  // namespace neuron::daemon
