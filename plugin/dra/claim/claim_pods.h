#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim.h"
#include "plugin/dra/claim/claim_reader.h"
#include "plugin/dra/claim/claim_use.h"
#include "plugin/dra/claim/pod_use.h"

namespace neuron::plugin::dra {

// The pods that use claims of one call, each read once. One thread; blocks on the API server and the kubelet.
class PodsOfClaims {
 public:
  using PodNames = std::vector<std::pair<std::string, std::string>>;  // namespace, name
  using Here = std::function<Result<PodNames>()>;  // of every pod that the kubelet has here; empty: not known
  static constexpr std::size_t kMaxPods = 256;     // that are read for a claim; the API's bound of reservations

  // Both must outlive it.
  PodsOfClaims(ClaimReader& reader, const Here& here) : reader_(reader), here_(here) {}

  struct Uses {
    std::vector<ContainerOfPod> containers;  // of all its pods, also those that do not use it
    std::chrono::seconds grace{};            // the longest of its pods
  };
  // Errors: failed_precondition when there are too many pods, or none, with the reason; unavailable when a stop is
  // requested; those of the kubelet and of ClaimReader::read_pod(), but not_found: a pod that is gone uses nothing.
  [[nodiscard]] Result<Uses> read(const Claim& claim, const std::string& claim_namespace, const std::stop_token& stop);

 private:
  [[nodiscard]] Result<std::vector<PodRef>> pods_of(const Claim& claim, const std::string& claim_namespace);
  [[nodiscard]] const Result<PodUse>& pod(const std::string& pod_namespace, const std::string& name);

  ClaimReader& reader_;
  const Here& here_;
  std::map<std::pair<std::string, std::string>, Result<PodUse>> pods_;
  std::optional<Result<PodNames>> pods_here_;  // nullopt: not asked
};

}  // namespace neuron::plugin::dra
