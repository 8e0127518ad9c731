#pragma once

#include <chrono>
#include <condition_variable>
#include <random>
#include <stop_token>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/kube/api.h"
#include "agent/kube/cluster_access.h"
#include "agent/kube/token_bucket.h"
#include "agent/kube/transfer.h"

namespace neuron::kube {

struct ClientLimits {
  HttpLimits http{.deadline = std::chrono::seconds(10), .max_bytes = std::size_t{8} << 20U};
  // Of all callers together. The start of a node full of pods fits into the burst.
  double calls_per_second = 20;
  int burst = 50;
  int at_once = 8;                         // streams apart; each has a TLS connection, which takes time and memory
  std::chrono::seconds longest_pause{10};  // that a server can ask for with Retry-After
};

// The API server over TLS, HTTP/1.1. Connections are kept and used again, one for each call under way. The token and
// the CA are read from their files for every call, so a rotated one counts at once; after a 401 they are read again and
// the call is made once more. Besides that nothing is tried twice, except that a kept connection which has been lost
// is replaced (not for creating): who calls knows what may be repeated. A row of callers forms when there are more
// calls than the limits say; who would wait in it longer than a deadline gets `unavailable` at once. All messages are
// without the token. Thread-safe.
class ApiClient final : public Api {
 public:
  explicit ApiClient(ApiPlaces places, const ClientLimits& limits = {});

  [[nodiscard]] Result<ApiReply> call(const ApiCall& call) override;
  [[nodiscard]] Result<ApiReply> stream(const ApiCall& call, const OnLine& on_line,
                                        const std::stop_token& stop) override;

  // Ends what is under way, and everything later at once, with `unavailable`; streams as if they had been stopped.
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

  static constexpr std::size_t kMaxIdle = 2;  // connections that nobody uses; each takes some 50 KB

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

}  // namespace neuron::kube
