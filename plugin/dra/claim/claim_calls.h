#pragma once

#include <cstddef>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim_port.h"

// One call of the kubelet, of whichever version: what may be asked, and that every claim is answered.
namespace neuron::plugin::dra {

inline constexpr std::size_t kMostClaims = 256;  // of one pod; far above what a pod can use

// The claim can be looked up, and its uid may be part of a file's name. Errors: invalid_argument, saying which part is
// not what Kubernetes gives. Pure.
[[nodiscard]] Result<void> check_claim(const ClaimRef& claim);

// Asks `port` for those that pass the check; the others, and those that it forgets, have an error. Exactly one answer
// for each uid. Errors of the whole call: invalid_argument for more than kMostClaims. Threads and time: as `port`.
[[nodiscard]] Result<std::map<std::string, PrepareAnswer>> prepare_all(ClaimPort& port,
                                                                       const std::vector<ClaimRef>& claims,
                                                                       const std::stop_token& stop);
[[nodiscard]] Result<std::map<std::string, std::string>> unprepare_all(ClaimPort& port,
                                                                       const std::vector<ClaimRef>& claims);

}  // namespace neuron::plugin::dra
