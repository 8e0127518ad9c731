#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugin/dra/claim/claim_request.h"

namespace neuron::plugin::dra {

// Prepares every claim as one device named after it; a claim whose name is in `hang_on` waits to be stopped or let go.
class FakeClaims final : public ClaimCalls {
 public:
  std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>& claims,
                                               const std::stop_token& stop) override {
    std::map<std::string, PrepareAnswer> answers;
    for (const ClaimRef& claim : claims) answers[claim.uid] = prepare_one(claim, stop);
    return answers;
  }
  std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>& claims) override {
    std::map<std::string, std::string> answers;
    const std::lock_guard lock(mutex_);
    for (const ClaimRef& claim : claims) {
      prepared_.erase(claim.uid);
      answers[claim.uid] = "";
    }
    return answers;
  }

  void hang_on(std::string name) {
    const std::lock_guard lock(mutex_);
    hang_on_ = std::move(name);
  }
  void let_go() {
    hang_on("");
    changed_.notify_all();
  }
  [[nodiscard]] bool wait_until_hanging() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return hanging_ > 0; });
  }
  bool ignore_stop = false;  // set before any call
  [[nodiscard]] std::set<std::string> prepared() const {
    const std::lock_guard lock(mutex_);
    return prepared_;
  }

 private:
  PrepareAnswer prepare_one(const ClaimRef& claim, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    ++hanging_;
    changed_.notify_all();
    const std::stop_callback wake(stop, [this] { changed_.notify_all(); });
    while (claim.name == hang_on_ && (ignore_stop || !stop.stop_requested())) {
      changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
    --hanging_;
    if (stop.stop_requested()) return {{}, "stopped"};
    prepared_.insert(claim.uid);
    return {{{{"chips"}, "node-1", "neuron-device-0", {"vendor/class=" + claim.uid}, std::nullopt}}, ""};
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string hang_on_;
  int hanging_ = 0;
  std::set<std::string> prepared_;
};

}  // namespace neuron::plugin::dra
