#pragma once

#include <string>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "plugin/dra/claim/claim.h"
#include "plugin/dra/claim/pod_use.h"

namespace neuron::plugin::dra {

// Claims and pods from the API server, claims in the newest version that it serves: v1, v1beta2, v1beta1. Thread-safe;
// every call blocks as long as kube::Api does, twice where the server has to be asked for its versions first.
class ClaimReader {
 public:
  // `api` must outlive the reader. `driver`: whose results count.
  ClaimReader(kube::Api& api, std::string driver);

  // Errors: not_found; those of kube::Api and of parse_claim().
  [[nodiscard]] Result<Claim> read_claim(const std::string& claim_namespace, const std::string& name) EXCLUDES(mutex_);
  // Errors: not_found; those of kube::Api and of parse_pod_use().
  [[nodiscard]] Result<PodUse> read_pod(const std::string& pod_namespace, const std::string& name);

 private:
  [[nodiscard]] Result<std::string> get(const std::string& path);
  [[nodiscard]] std::string ask_version();

  kube::Api& api_;
  const std::string driver_;
  Mutex mutex_;
  std::string version_ GUARDED_BY(mutex_);  // of resource.k8s.io; "" = not known
};

}  // namespace neuron::plugin::dra
