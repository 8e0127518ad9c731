#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/turn_loop.h"
#include "agent/kube/limits.h"
#include "agent/kube/object_watch.h"
#include "plugin/placement/placement_book.h"

namespace neuron::plugin {

// Fills a PlacementBook from a watch of this node's pods, and writes NEURON_ALLOCATED "true" on those that were given
// the ids that AWS_NEURON_IDS names: the one key that is written, by a merge patch with the pod's uid. Two threads:
// one watches, one writes; nothing waits for either.
class PlacementWatch final : public kube::WatchSink {
 public:
  static constexpr int kMostAttempts = 5;  // to write one pod
  static constexpr std::chrono::milliseconds kFirstRetry{1000}, kLongestRetry{30'000};
  static constexpr std::size_t kMostPending = 1024;

  // `node`: its name. `post`: as PlacementBook::Ports. `api` and `clock` must outlive it; it is not started.
  PlacementWatch(kube::Api& api, std::string node, std::function<void(SteadyTime, PlacementBook::Job)> post,
                 const Clock& clock);
  ~PlacementWatch() override = default;
  PlacementWatch(const PlacementWatch&) = delete;
  PlacementWatch& operator=(const PlacementWatch&) = delete;

  [[nodiscard]] PlacementBook& book() { return *book_; }  // lives as long

  // Until `stop` is requested; then a running call still takes its time (ApiClient::close() ends it). Blocks.
  void run(const std::stop_token& stop);

  // One step of the writing thread: writes what is due, and returns the time until something is. For tests.
  [[nodiscard]] std::chrono::milliseconds turn() EXCLUDES(mutex_);

  // Called on the watch's thread.
  void on_reset() override { book_->reset(); }
  void on_upsert(const kube::ApiObject& object) override;
  void on_remove(const kube::ApiObject& object) override;
  void on_synced() override;
  void on_trouble(const Error& error) override;

 private:
  struct Pending {
    PodName pod;
    int attempts = 0;
    SteadyTime due{};
  };
  void add(PodName pod) EXCLUDES(mutex_);
  void write(Pending pending);
  void restored();

  kube::Api& api_;
  const std::string node_;
  const Clock& clock_;
  kube::Backoff backoff_;  // of the writing thread
  std::string error_;      // of the watch's thread: as logged last
  const std::shared_ptr<PlacementBook> book_;

  TurnLoop loop_;
  Mutex mutex_;
  std::vector<Pending> pending_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin
