#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/base/parse.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"

// The kubelet's calls about claims, without gRPC (docs/reference/kubelet.md#dra); and the ResourceClaims and pods that
// they are about, as the API server has them. Foreign text: sizes are bounded here, but whether a named device exists
// is not checked.
namespace neuron::plugin::dra {

// Why a claim is not prepared, as an operator can act upon it: Error::reason of whatever ends a Prepare, and the label
// `reason` of neuron_agent_refusals_total (docs/metrics.md#refusals).
enum class RefusalReason {
  not_scanned,      // the node, or a part of it that matters, has no scan yet or cannot be read
  no_claim,         // it was deleted, or recreated under its name
  bad_allocation,   // none for this node, a device twice, or more cores than a device has
  unknown_device,   // a device that this node lacks
  unhealthy,        // a device that is unhealthy, and the claim does not tolerate that
  held_by_claim,    // hardware that another claim holds
  held_by_plugin,   // hardware that a container holds through a device plugin or another driver
  holders_unknown,  // the kubelet has not listed yet what such containers hold
  in_use,           // a process still uses the cores
  lnc_clash,        // a device has one LNC, and another user, or the numbers of its cores, need another
  bad_config,       // its opaque configuration, or a request for no core
  ultraserver,      // this node is in no UltraServer of that size, or its election has not ended
  request_clash,    // requests that one container uses, or several do differently, need different variables
  other_claim,      // another claim of its containers is not prepared
  pods_unread,      // the variables depend on its pods, which cannot be read
  api_server,       // it cannot be read from the API server
  forbidden,        // the service account may not read it
  claim_files,      // the record or the CDI file cannot be read or written
  interrupted,      // the call was cancelled, or the claim was released or prepared by another call meanwhile
  bad_request,      // the kubelet's call is malformed
  other,
};
inline constexpr std::array<std::string_view, 21> kRefusalReasons = {  // by enumerator
    "not_scanned",    "no_claim",        "bad_allocation", "unknown_device", "unhealthy",  "held_by_claim",
    "held_by_plugin", "holders_unknown", "in_use",         "lnc_clash",      "bad_config", "ultraserver",
    "request_clash",  "other_claim",     "pods_unread",    "api_server",     "forbidden",  "claim_files",
    "interrupted",    "bad_request",     "other"};

[[nodiscard]] constexpr std::string_view to_string(RefusalReason reason) {
  return kRefusalReasons.at(static_cast<std::size_t>(reason));
}
[[nodiscard]] inline Error make_error(ErrorCode code, RefusalReason reason, std::string message) {
  return make_error(code, std::move(message)).with_reason(to_string(reason));
}
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, RefusalReason reason, std::string message) {
  return fail(make_error(code, reason, std::move(message)));
}

struct ClaimRef {
  std::string claim_namespace;
  std::string name;
  std::string uid;
};

// One device that was prepared for one or more requests of a claim.
struct PreparedDevice {
  std::vector<std::string> requests;  // base names: "chips" of "chips/first"
  std::string pool;
  std::string device;                // as in the slice: "neuron-device-3"
  std::vector<std::string> cdi_ids;  // the device's own first, as the kubelet shows the first in the pod's status
  std::optional<std::string> share_id{};
  std::string share{};  // core::ShareName of the cores that the claim has of it; "" = all of it. Not for the kubelet
};

struct PrepareAnswer {
  std::vector<PreparedDevice> devices;
  std::string error;          // for the event of the pod: what, where, what to do; "" = prepared
  std::string_view reason{};  // of the error, for metrics: one of kRefusalReasons; "" = prepared
};

// The answer for a claim that is not prepared; RefusalReason::other where the error has no reason.
[[nodiscard]] inline PrepareAnswer refused(const Error& error) {
  constexpr std::size_t kMaxMessage = 1000;  // an event has 1,024
  return {{},
          printable_line(error.message, kMaxMessage),
          error.reason.empty() ? to_string(RefusalReason::other) : error.reason};
}

// Thread-safe; every call may block (API server, files, a device that is still in use), each for its claims only.
class ClaimCalls {
 public:
  virtual ~ClaimCalls() = default;
  // By uid, one answer for each claim. A requested stop ends claims that wait, with an error and nothing prepared.
  [[nodiscard]] virtual std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>& claims,
                                                                     const std::stop_token& stop) = 0;
  // By uid: the error, "" = nothing of it is left. An unknown claim is no error.
  [[nodiscard]] virtual std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>& claims) = 0;
};

// Calls `calls` for the claims whose namespace, name and uid are valid; the others, and those without an answer, get an
// error. Exactly one answer for each uid. Errors of the whole call: invalid_argument for more than kMostClaims. Threads
// and time: as ClaimCalls.
inline constexpr std::size_t kMostClaims = 256;  // of one pod; far above what a pod can use
[[nodiscard]] Result<std::map<std::string, PrepareAnswer>> prepare_all(ClaimCalls& calls,
                                                                       const std::vector<ClaimRef>& claims,
                                                                       const std::stop_token& stop);
[[nodiscard]] Result<std::map<std::string, std::string>> unprepare_all(ClaimCalls& calls,
                                                                       const std::vector<ClaimRef>& claims);

// A uid that may be part of a file's name: letters, digits and '-', at most 64. Kubernetes' own are UUIDs. Pure.
[[nodiscard]] bool is_object_uid(std::string_view text);

// Tolerates a taint when every field that is not "" agrees; see tolerates().
struct Toleration {
  std::string key;      // "" with `exists` = every taint
  bool exists = false;  // operator Exists: the value does not matter; else Equal
  std::string value;
  std::string effect;  // "" = every one
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

[[nodiscard]] bool tolerates(const std::vector<Toleration>& tolerations, std::string_view key, std::string_view value,
                             std::string_view effect);

// One allocated device, status.allocation.devices.results[].
struct AllocationResult {
  std::string request;     // base name: "chips" of "chips/first"
  std::string subrequest;  // "first"; "" = the request has no alternatives
  std::string pool;
  std::string device;
  bool admin_access = false;
  std::vector<Toleration> tolerations;  // of the result, and of its request, as servers before 1.35 do not copy them
  std::optional<std::string> share_id{};
  // Logical cores allocated of a device that claims may share (consumedCapacity), by the node's LNC of that time;
  // nullopt: all of the device.
  std::optional<int> cores{};
  bool is_alone = false;  // its request says no cores: nothing else shares the device, whose cores are all its own

  [[nodiscard]] std::string full_request() const { return subrequest.empty() ? request : request + "/" + subrequest; }
};

// An entry of config[] of our driver.
struct OpaqueConfig {
  bool from_class = false;            // source FromClass: the claim's own configuration takes precedence
  std::vector<std::string> requests;  // full or base names; empty = all
  std::string parameters;             // JSON text
};

// An entry of config[] in an allocation, a claim, a template or a class; nullopt: it is for another driver. Pure.
[[nodiscard]] std::optional<OpaqueConfig> opaque_config(const nlohmann::json& entry, std::string_view driver);

struct PodRef {
  std::string name;
  std::string uid;
  friend bool operator==(const PodRef&, const PodRef&) = default;
};

struct ResourceClaim {
  std::string claim_namespace;
  std::string name;
  std::string uid;
  std::string resource_version;
  bool is_allocated = false;
  std::vector<AllocationResult> results;  // of our driver only, in the API's order
  std::vector<OpaqueConfig> configs;      // of our driver only: classes first, then the claim, each in the API's order
  std::vector<PodRef> pods;               // status.reservedFor, as far as they are pods of the claim's namespace
  // The rest of status.reservedFor, "podgroups/train": any of their pods may use the claim, and it does not say which
  // (docs/reference/dra.md#claims).
  std::vector<std::string> other_consumers{};
};

// Reads a claim of v1, v1beta2 or v1beta1, whose allocations are the same. Errors: data_corrupt when the text is no
// claim, or has more than the API allows: 32 results, 32 configurations, 256 consumers, each four times. Pure.
[[nodiscard]] Result<ResourceClaim> parse_resource_claim(std::string_view text, std::string_view driver);

// The requests of one claim that a container uses, by name; empty = all of them.
using UsedRequests = std::set<std::string>;

struct ContainerUse {
  std::string name;  // "container", or "pod/container" of several pods
  // By the claim's name, in the pod's namespace. A claim that has not been made for the pod yet is left out.
  std::map<std::string, UsedRequests> claims;
};

inline constexpr std::chrono::seconds kMaxGrace = std::chrono::hours(24 * 30);

// The claims that a pod's containers use, as the kubelet passes them (docs/reference/dra.md#prepare).
struct PodUse {
  std::string uid;
  bool has_ended = false;  // phase Succeeded or Failed: its containers use nothing any more
  // Time for its containers after its deletion: spec.terminationGracePeriodSeconds, or that of a deletion which
  // has begun where that is longer; at most kMaxGrace.
  std::chrono::seconds grace{30};
  std::vector<ContainerUse> containers;  // init containers too, those with claims only
};

// Errors: data_corrupt when the text is no pod, or has more than 1,024 containers or 4,096 uses. Pure.
[[nodiscard]] Result<PodUse> parse_pod_use(std::string_view text);

// Reads claims, in the newest version that the server has (v1, v1beta2, v1beta1), and pods. Thread-safe; every call
// blocks as long as kube::Api does, twice where the server has to be asked for its versions first.
class ClaimReader {
 public:
  // `api` must outlive the reader. `driver`: whose results count.
  ClaimReader(kube::Api& api, std::string driver) : api_(api), driver_(std::move(driver)) {}

  // Errors: not_found; those of kube::Api and of parse_resource_claim().
  [[nodiscard]] Result<ResourceClaim> read_claim(const std::string& claim_namespace, const std::string& name)
      EXCLUDES(mutex_);
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

// An error of read_claim() with its reason: no_claim, forbidden or api_server.
[[nodiscard]] inline Error unread_claim(Error error) {
  const RefusalReason reason = error.code == ErrorCode::not_found           ? RefusalReason::no_claim
                               : error.code == ErrorCode::permission_denied ? RefusalReason::forbidden
                                                                            : RefusalReason::api_server;
  return std::move(error).with_reason(to_string(reason));
}

// The pods that use claims of one call, each read once. One thread; blocks on the API server and the kubelet.
class PodsOfClaims {
 public:
  using PodNames = std::vector<std::pair<std::string, std::string>>;  // namespace, name
  using Here = std::function<Result<PodNames>()>;  // of every pod that the kubelet has here; empty: not known
  static constexpr std::size_t kMaxPods = 256;     // that are read for a claim; the API's bound of reservations

  // Both must outlive it.
  PodsOfClaims(ClaimReader& reader, const Here& here) : reader_(reader), here_(here) {}

  struct Uses {
    std::vector<ContainerUse> containers;  // of all its pods, also those that do not use it
    std::chrono::seconds grace{};          // the longest of its pods
  };
  // Errors: failed_precondition when there are too many pods, or none, with the reason; unavailable when a stop is
  // requested; those of the kubelet and of ClaimReader::read_pod(), but not_found: a pod that is gone uses nothing.
  [[nodiscard]] Result<Uses> read(const ResourceClaim& claim, const std::string& claim_namespace,
                                  const std::stop_token& stop);

 private:
  [[nodiscard]] Result<std::vector<PodRef>> pods_of(const ResourceClaim& claim, const std::string& claim_namespace);

  ClaimReader& reader_;
  const Here& here_;
  std::map<std::pair<std::string, std::string>, Result<PodUse>> pods_;
  std::optional<Result<PodNames>> pods_here_;  // nullopt: not asked
};

}  // namespace neuron::plugin::dra
