#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "agent/base/result.h"
#include "agent/kube/transfer.h"

// One request to the API server, for programs that ask once.
namespace neuron::kube {

// How long and how much one request may take.
struct GetLimits {
  std::chrono::milliseconds deadline{5000};       // for all of it: name, connection, TLS, answer
  std::size_t max_bytes = std::size_t{1} << 20U;  // of the answer's body
};

// One GET of `path` ("/api/v1/nodes/n1"); returns the body of a 200. `accept` is the media type that is asked for. The
// same trust and nothing else as Connection; nothing is kept open afterwards. Errors: as Connection::call and, for
// another status than 200, status_error(), each with the URL. Any thread; blocks up to the deadline.
[[nodiscard]] Result<std::string> api_get(const ClusterAccess& access, const std::string& path,
                                          const std::string& accept, const GetLimits& limits);

}  // namespace neuron::kube
