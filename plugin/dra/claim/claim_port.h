#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/base/result.h"

// The kubelet's calls to a driver, without gRPC: plugin/dra/dra_service.h turns its calls into these and back
// (docs/reference/kubelet.md#dra).
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
class ClaimPort {
 public:
  virtual ~ClaimPort() = default;
  // By uid, one answer for each claim. A requested stop ends what waits, with an error and nothing prepared.
  [[nodiscard]] virtual std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>& claims,
                                                                     const std::stop_token& stop) = 0;
  // By uid: the error, "" = nothing of it is left. An unknown claim is no error.
  [[nodiscard]] virtual std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>& claims) = 0;
};

}  // namespace neuron::plugin::dra
