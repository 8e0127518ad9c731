#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"

// The kubelet's calls about claims, without gRPC: plugin/dra/serve/dra_service.h converts its messages into these and
// back (docs/reference/kubelet.md#dra).
namespace neuron::plugin::dra {

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
};

struct PrepareAnswer {
  std::vector<PreparedDevice> devices;
  std::string error;               // for the event of the pod: what, where, what to do; "" = prepared
  std::optional<ErrorCode> why{};  // the kind of the error, for those who count them; nullopt: not known
};

// Thread-safe; every call may block (API server, files, a device that is still in use), each for its claims only.
class ClaimCalls {
 public:
  virtual ~ClaimCalls() = default;
  // By uid, one answer for each claim. A requested stop ends what waits, with an error and nothing prepared.
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

// The name of a namespace, claim or pod: letters, digits, '-' and '.' (RFC 1123), so it may be part of a path. Pure.
[[nodiscard]] bool is_object_name(std::string_view text, std::size_t max_bytes = 253);
// A uid that may be part of a file's name: letters, digits and '-', at most 64. Kubernetes' own are UUIDs. Pure.
[[nodiscard]] bool is_object_uid(std::string_view text);

}  // namespace neuron::plugin::dra
