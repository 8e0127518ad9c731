#pragma once

#include <string>

#include "agent/base/result.h"

namespace neuron::kube {

// A pod's access to its API server. The kubelet sets the two variables in every container; the two files are those of a
// service account volume (kubelet: pkg/serviceaccount, client-go: rest.InClusterConfig).
struct InClusterPlaces {
  std::string host;  // KUBERNETES_SERVICE_HOST: an address (v4 or v6) or a name; "" = not set
  std::string port;  // KUBERNETES_SERVICE_PORT; "" = not set
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
};

// Access for one request. The token is a secret: no message contains it. The kubelet rotates it, so read it for each
// request instead of keeping it.
struct ClusterAccess {
  std::string url;     // "https://10.96.0.1:443", no slash at the end
  std::string token;   // one line, printable ASCII
  std::string ca_pem;  // PEM text; the only certificates that are trusted
  // Path of a socket where a proxy with credentials of its own serves plain HTTP (`kubectl proxy --unix-socket`): then
  // the URL is "http://localhost", and neither token nor certificates are used. "": none.
  std::string unix_socket{};
};

// Flags about the API server, each "" when not given.
struct ApiFlags {
  std::string server{};      // --api-server "https://10.0.0.1:6443"
  std::string token_file{};  // --api-token-file
  std::string ca_file{};     // --api-ca-file
};

// Location of the server and of the two files, whose content rotates.
struct ApiPlaces {
  std::string url;  // "https://10.96.0.1:443", no slash at the end
  std::string token_file;
  std::string ca_file;
};

// The places of this process: its environment, and the files at their usual paths. Not while another thread changes the
// environment.
[[nodiscard]] InClusterPlaces in_cluster_places();

// Flags first, then the pod's. Errors: failed_precondition (no flag for the server, and not a pod of a cluster),
// invalid_argument (not a URL of a server, which is "https://", an address or name, and perhaps a port; no host or port
// in the variables). Pure.
[[nodiscard]] Result<ApiPlaces> api_places(const ApiFlags& flags, const InClusterPlaces& pod);

// Reads the files, each at most once; a token of more than 16 KiB or a CA file of more than 1 MiB is refused. Takes
// some tens of microseconds, so it is done for every call. Errors: failed_precondition (a file is absent; the message
// says which), data_corrupt (empty, too long, or no token), permission_denied, internal. Any thread; blocks on file
// reads.
[[nodiscard]] Result<ClusterAccess> read_access(const ApiPlaces& places);

// Both, without flags.
[[nodiscard]] Result<ClusterAccess> in_cluster_access(const InClusterPlaces& places);

}  // namespace neuron::kube
