#pragma once

#include <chrono>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/kube/api.h"
#include "agent/kube/backoff.h"
#include "agent/kube/watch_text.h"

namespace neuron::kube {

// What is watched: the objects of one collection that a selector leaves.
struct WatchPlace {
  std::string path;            // "/apis/resource.k8s.io/v1/resourceslices"
  std::string field_selector;  // "spec.driver=neuron.aws.com,spec.nodeName=n1", not encoded; "" = all
};

// Is told what there is, on the thread of ObjectWatch::run. May make calls and block; nothing more arrives meanwhile.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // A complete list has come: what was known is void, an on_upsert for each of its objects and on_synced follow at
  // once.
  virtual void on_reset() = 0;
  virtual void on_upsert(const ApiObject& object) = 0;  // new, changed, or the same again
  virtual void on_remove(const ApiObject& object) = 0;  // as it was last; may be unknown
  virtual void on_synced() = 0;                         // what is known is complete, as of the list
  // Something failed and is tried again: the same may be told any number of times. What is known may be out of date
  // until the next on_synced, or on_remove or on_upsert.
  virtual void on_trouble(const Error& error) = 0;
};

struct WatchTimes {
  std::chrono::milliseconds first_retry{500};
  std::chrono::milliseconds longest_retry{std::chrono::seconds(30)};
  // A net below the watch: a full list after this time, a fifth more or less by chance.
  std::chrono::milliseconds relist{std::chrono::minutes(5)};
};

// One list-and-watch: a list, then what changes from its resourceVersion on, with bookmarks, for as long as the server
// knows that version (410: list anew, at once where the last list is older than some seconds). A server that cannot be
// reached, forbids, lies or ends its watches at once is asked again after a backoff, for ever. Not synchronised.
class ObjectWatch {
 public:
  // `wait`: how it waits between attempts. All references must outlive it.
  ObjectWatch(Api& api, WatchPlace place, WatchSink& sink, const Clock& clock, const WatchTimes& times = {},
              Wait wait = wait_for);

  void run(const std::stop_token& stop);  // until then; blocks

 private:
  // How new a list must be: `any` that the server has at hand (the first), at least as new as what is known (the net;
  // both are served from memory), or the newest.
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
  std::string version_;  // all that happened up to here is known
  SteadyTime listed_{};
  SteadyTime list_again_{};  // the net
};

}  // namespace neuron::kube
