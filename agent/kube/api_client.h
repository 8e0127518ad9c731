#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/kube/cluster_access.h"
#include "agent/kube/limits.h"
#include "agent/kube/transfer.h"

namespace neuron::kube {

struct ClientLimits {
  HttpLimits http{.deadline = std::chrono::seconds(10), .max_bytes = std::size_t{8} << 20U};
  // Limits for all callers together. The start of a node full of pods fits into the burst.
  double calls_per_second = 20;
  int burst = 50;
  int at_once = 8;                         // without streams; each has a TLS connection, which takes time and memory
  std::chrono::seconds longest_pause{10};  // of those that a server requests with Retry-After
};

// The API server over TLS, HTTP/1.1. Connections are kept and reused, one for each call in flight. The token and the
// CA are read from their files for every call, so that a rotated one is used at once; after a 401 they are read again
// and the call is repeated once. Otherwise nothing is repeated, except that a lost kept connection is replaced (not for
// creating): the caller knows what may be repeated. Callers over the limits wait; one that would wait longer than a
// deadline gets `unavailable` at once. No message contains the token. Thread-safe.
class ApiClient final : public Api {
 public:
  explicit ApiClient(ApiPlaces places, const ClientLimits& limits = {});

  [[nodiscard]] Result<ApiReply> call(const ApiCall& call) override;
  [[nodiscard]] Result<ApiReply> stream(const ApiCall& call, const OnLine& on_line,
                                        const std::stop_token& stop) override;

  // Ends calls in flight, and all later ones at once, with `unavailable`; streams as if they had been stopped.
  void close() { closing_.request_stop(); }

 private:
  [[nodiscard]] Result<ApiReply> exchange(const ApiCall& call, const OnLine* on_line, const std::stop_token& stop);
  [[nodiscard]] Result<HttpAnswer> attempt(const HttpRequest& request, const OnLine* on_line,
                                           const std::stop_token& stop);
  [[nodiscard]] Result<void> wait_in_row(const std::stop_token& stop);
  [[nodiscard]] Result<void> enter(const std::stop_token& stop) EXCLUDES(mutex_);
  void leave() EXCLUDES(mutex_);
  [[nodiscard]] Connection borrow();
  void give_back(Connection connection);

  static constexpr std::size_t kMaxIdle = 2;  // unused connections; each takes some 50 KB

  const ApiPlaces places_;
  const ClientLimits limits_;
  std::stop_source closing_;

  Mutex mutex_;
  std::condition_variable_any left_;
  int busy_ GUARDED_BY(mutex_) = 0;  // calls between enter() and leave()
  std::vector<Connection> idle_ GUARDED_BY(mutex_);
  TokenBucket bucket_ GUARDED_BY(mutex_);
  std::minstd_rand chance_ GUARDED_BY(mutex_){std::random_device{}()};
};

// Location of a node by the labels topology.kubernetes.io/zone and /region of its Node object; "" = unknown.
struct NodePlace {
  std::string zone;
  std::string region;
};

// Decorator for metrics: counts calls by outcome (a watch when it ends), and keeps the place in the last answer to a
// GET of this node's object; no call is made for the place alone. Thread-safe; threads and time as of `api`, which must
// outlive it.
class ObservedApi final : public Api {
 public:
  ObservedApi(Api& api, const std::string& node) : api_(api), path_("/api/v1/nodes/" + percent_encoded(node)) {}

  [[nodiscard]] Result<ApiReply> call(const ApiCall& call) override EXCLUDES(mutex_);
  [[nodiscard]] Result<ApiReply> stream(const ApiCall& call, const OnLine& on_line,
                                        const std::stop_token& stop) override;

  // "ok": a status below 400. "error": any other, or no answer.
  [[nodiscard]] std::map<std::string, std::uint64_t> counts() const;
  [[nodiscard]] NodePlace place() const EXCLUDES(mutex_);

 private:
  void count(const Result<ApiReply>& reply);

  Api& api_;
  const std::string path_;
  std::atomic<std::uint64_t> ok_ = 0;
  std::atomic<std::uint64_t> errors_ = 0;
  mutable Mutex mutex_;
  NodePlace place_ GUARDED_BY(mutex_);
};

// One label of a Node, for programs that make a single call: one GET of the object's metadata, on a connection that is
// closed afterwards; nullopt when the node does not have the label. Needs the verb get on nodes. Errors, each with the
// URL: as Connection::call; status_error() for another status than 200; invalid_argument (not a node's name, not a
// label key), data_corrupt (no such object). Any thread; blocks up to the deadline.
[[nodiscard]] Result<std::optional<std::string>> node_label(const ClusterAccess& access, const std::string& node,
                                                            const std::string& label, const HttpLimits& limits);

}  // namespace neuron::kube
