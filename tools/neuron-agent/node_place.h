#pragma once

#include <stop_token>
#include <string>

#include "agent/base/mutex.h"
#include "agent/kube/api.h"

namespace neuron::agent {

// Where a node is, by the labels topology.kubernetes.io/zone and /region of its Node object; "" = not known.
struct NodePlace {
  std::string zone;
  std::string region;
};

// Passes all calls on, and keeps the place that the last answer to a GET of that node told: nothing is asked for it
// alone. Thread-safe; threads and time as `api`, which must outlive it.
class NodePlaceApi final : public kube::Api {
 public:
  NodePlaceApi(kube::Api& api, const std::string& node)
      : api_(api), path_("/api/v1/nodes/" + kube::percent_encoded(node)) {}

  [[nodiscard]] Result<kube::ApiReply> call(const kube::ApiCall& call) override EXCLUDES(mutex_);
  [[nodiscard]] Result<kube::ApiReply> stream(const kube::ApiCall& call, const OnLine& on_line,
                                              const std::stop_token& stop) override {
    return api_.stream(call, on_line, stop);
  }

  [[nodiscard]] NodePlace place() const EXCLUDES(mutex_);

 private:
  kube::Api& api_;
  const std::string path_;
  mutable Mutex mutex_;
  NodePlace place_ GUARDED_BY(mutex_);
};

}  // namespace neuron::agent
