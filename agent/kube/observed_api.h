#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>

#include "agent/base/mutex.h"
#include "agent/kube/api.h"

namespace neuron::kube {

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

}  // namespace neuron::kube
