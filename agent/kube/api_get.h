#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "agent/base/result.h"
#include "agent/kube/cluster_access.h"

// Requests to the API server; the only user of libcurl.
namespace neuron::kube {

// How long and how much one request may take.
struct GetLimits {
  std::chrono::milliseconds deadline{5000};       // for all of it: name, connection, TLS, answer
  std::size_t max_bytes = std::size_t{1} << 20U;  // of the answer's body
};

// One GET of `path` ("/api/v1/nodes/n1"); returns the body of a 200. `accept` is the media type that is asked for. The
// server's certificate is always verified against `access.ca_pem` alone, redirects are not followed, and no proxy is
// used: the token goes to that server or nowhere. Nothing is kept open afterwards.
//
// Errors, each with the URL and what to do: unavailable (nobody listens, no such name, the connection broke, 429 or
// 5xx), deadline_exceeded, permission_denied (401, 403, with the server's own words), not_found (404),
// failed_precondition (the certificate is not signed by that CA or names another server; a redirect), data_corrupt
// (more than max_bytes, or no HTTP), internal. Any thread; blocks up to the deadline.
[[nodiscard]] Result<std::string> api_get(const ClusterAccess& access, const std::string& path,
                                          const std::string& accept, const GetLimits& limits);

}  // namespace neuron::kube
