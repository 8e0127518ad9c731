#pragma once

#include <chrono>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/kube/answers.h"
#include "agent/kube/api.h"
#include "agent/kube/limits.h"

namespace neuron::kube {

// The objects of one collection that match a selector.
struct WatchPlace {
  std::string path;            // "/apis/resource.k8s.io/v1/resourceslices"
  std::string field_selector;  // "spec.driver=neuron.aws.com,spec.nodeName=n1", not encoded; "" = all
};

// Receives the objects on the thread of ObjectWatch::run. May make calls and block; nothing more arrives meanwhile.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // A complete list has come: earlier objects are void; an on_upsert for each listed one and on_synced follow at once.
  virtual void on_reset() = 0;
  virtual void on_upsert(const ApiObject& object) = 0;  // new, changed, or the same again
  virtual void on_remove(const ApiObject& object) = 0;  // its last state; may be unknown
  virtual void on_synced() = 0;                         // the objects are complete, as of the list
  // Something failed and is tried again: the same error may repeat any number of times. The known objects may be out of
  // date until the next on_synced, or on_remove or on_upsert.
  virtual void on_trouble(const Error& error) = 0;
};

struct WatchTimes {
  std::chrono::milliseconds first_retry{500};
  std::chrono::milliseconds longest_retry{std::chrono::seconds(30)};
  // A full list as a safeguard, after this time plus or minus a random fifth.
  std::chrono::milliseconds relist{std::chrono::minutes(5)};
};

// One list-and-watch: a list, then the changes from its resourceVersion on, with bookmarks, for as long as the server
// knows that version (410: list again, at once where the last list is older than some seconds). After a failure, a
// refusal, a malformed answer or a watch that ends at once it retries after a backoff, without end. Not synchronised.
class ObjectWatch {
 public:
  // `wait` is called between attempts. All references must outlive it.
  ObjectWatch(Api& api, WatchPlace place, WatchSink& sink, const Clock& clock, const WatchTimes& times = {},
              Wait wait = wait_for);

  void run(const std::stop_token& stop);  // until then; blocks

 private:
  // Required age of a list: `any` that the server has cached (the first), at least as new as the known objects (the
  // safeguard; both are served from memory), or the newest.
  enum class Age { any, known, newest };
  enum class Next { watch, list, list_at_once };

  [[nodiscard]] bool list(const std::stop_token& stop);
  [[nodiscard]] Result<std::vector<ApiObject>> read_list(const std::stop_token& stop);
  [[nodiscard]] std::string list_query(const std::string& next) const;
  void follow(const std::stop_token& stop);
  [[nodiscard]] Next watch_once(const std::stop_token& stop);
  [[nodiscard]] bool take(std::string_view line, Next& next);
  [[nodiscard]] Next list_anew(Error why, Next how = Next::list);
  void trouble(Error error) const;

  Api& api_;
  const WatchPlace place_;
  WatchSink& sink_;
  const Clock& clock_;
  const WatchTimes times_;
  const Wait wait_;

  Backoff backoff_;
  std::minstd_rand chance_{std::random_device{}()};
  Age age_ = Age::any;
  std::string version_;  // changes up to here are known
  SteadyTime listed_{};
  SteadyTime list_again_{};  // the safeguard
};

}  // namespace neuron::kube
