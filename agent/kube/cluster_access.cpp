#include "agent/kube/cluster_access.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "agent/base/fd.h"
#include "agent/base/file_text.h"
#include "agent/base/parse.h"

namespace neuron::kube {
namespace {

constexpr std::size_t kMaxToken = std::size_t{16} << 10U;
constexpr std::size_t kMaxCa = std::size_t{1} << 20U;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Result<std::string> read_bounded(const std::string& path, std::size_t max_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a FIFO without writer must not hold us
  if (!fd.valid()) {
    if (errno != ENOENT) return fail(error_from_errno(errno, path));
    return fail(ErrorCode::failed_precondition,
                path + " is not there: the pod needs a projected volume with a service account token and the CA");
  }
  TRY_ASSIGN(std::string text, read_all(fd.get(), max_bytes, path));
  if (trim(text).empty()) return fail(ErrorCode::data_corrupt, path + " is empty");
  return text;
}

// An address or a DNS name, and nothing that means something else within a URL.
bool is_host(const std::string& host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == ':';
  });
}

bool is_token(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](unsigned char letter) { return letter > 0x20 && letter < 0x7f; });
}

}  // namespace

InClusterPlaces in_cluster_places() {
  InClusterPlaces places;
  places.host = variable("KUBERNETES_SERVICE_HOST");
  places.port = variable("KUBERNETES_SERVICE_PORT");
  return places;
}

Result<ClusterAccess> in_cluster_access(const InClusterPlaces& places) {
  if (places.host.empty() || places.port.empty()) {
    return fail(ErrorCode::failed_precondition,
                "this is no pod of a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  if (!is_host(places.host)) {
    return fail(ErrorCode::invalid_argument, "KUBERNETES_SERVICE_HOST is no host: " + printable(places.host));
  }
  const auto port = parse_int(places.port, 1, 65535);
  if (!port) {
    return fail(ErrorCode::invalid_argument, "KUBERNETES_SERVICE_PORT is no port: " + printable(places.port));
  }
  ClusterAccess access;
  const bool is_v6 = places.host.find(':') != std::string::npos;
  access.url = "https://" + (is_v6 ? "[" + places.host + "]" : places.host) + ":" + std::to_string(*port);
  TRY_ASSIGN(const std::string token, read_bounded(places.token_file, kMaxToken));
  access.token = trim(token);
  if (!is_token(access.token)) return fail(ErrorCode::data_corrupt, places.token_file + " holds no token");
  TRY_ASSIGN(access.ca_pem, read_bounded(places.ca_file, kMaxCa));
  return access;
}

}  // namespace neuron::kube
