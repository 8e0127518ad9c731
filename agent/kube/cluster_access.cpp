#include "agent/kube/cluster_access.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "agent/base/fd.h"
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
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // do not block on a FIFO
  if (!fd.valid()) {
    if (errno != ENOENT) return fail(error_from_errno(errno, path));
    return fail(ErrorCode::failed_precondition,
                path + " is missing: the pod needs a projected volume with a service account token and the CA");
  }
  TRY_ASSIGN(std::string text, read_all(fd.get(), max_bytes, path));
  if (trim(text).empty()) return fail(ErrorCode::data_corrupt, path + " is empty");
  return text;
}

// An address or a DNS name, without characters that have a meaning in a URL.
bool is_host(const std::string& host) {
  return !host.empty() && host.size() <= 253 && std::ranges::all_of(host, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == ':';
  });
}

bool is_token(std::string_view token) {
  return std::ranges::all_of(token, [](unsigned char letter) { return letter > 0x20 && letter < 0x7f; });
}

// The URL without a slash at its end; "" when it is not the https URL of a server.
std::string server_url(std::string_view text) {
  constexpr std::string_view kScheme = "https://";
  if (!text.starts_with(kScheme)) return "";
  std::string_view host = text.substr(kScheme.size());
  if (host.ends_with('/')) host.remove_suffix(1);
  std::string url = std::string(kScheme).append(host);
  std::string_view port;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos || host.substr(1, end - 1).find(':') == std::string_view::npos) return "";
    port = host.substr(end + 1);
    host = host.substr(1, end - 1);
  } else {
    const std::size_t colon = std::min(host.find(':'), host.size());
    port = host.substr(colon);
    host = host.substr(0, colon);
  }
  const bool is_port = port.empty() || (port.starts_with(':') && parse_int(port.substr(1), 1, 65535));
  return is_host(std::string(host)) && is_port ? url : "";
}

}  // namespace

InClusterPlaces in_cluster_places() {
  InClusterPlaces places;
  places.host = variable("KUBERNETES_SERVICE_HOST");
  places.port = variable("KUBERNETES_SERVICE_PORT");
  return places;
}

Result<ApiPlaces> api_places(const ApiFlags& flags, const InClusterPlaces& pod) {
  ApiPlaces places;
  places.token_file = flags.token_file.empty() ? pod.token_file : flags.token_file;
  places.ca_file = flags.ca_file.empty() ? pod.ca_file : flags.ca_file;
  if (!flags.server.empty()) {
    places.url = server_url(flags.server);
    if (!places.url.empty()) return places;
    return fail(ErrorCode::invalid_argument,
                "--api-server is not a URL such as https://10.0.0.1:6443: " + printable(flags.server));
  }
  if (pod.host.empty() || pod.port.empty()) {
    return fail(ErrorCode::failed_precondition,
                "not running in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  if (!is_host(pod.host)) {
    return fail(ErrorCode::invalid_argument, "KUBERNETES_SERVICE_HOST is not a host: " + printable(pod.host));
  }
  const auto port = parse_int(pod.port, 1, 65535);
  if (!port) {
    return fail(ErrorCode::invalid_argument, "KUBERNETES_SERVICE_PORT is not a port: " + printable(pod.port));
  }
  const bool is_v6 = pod.host.find(':') != std::string::npos;
  places.url = "https://" + (is_v6 ? "[" + pod.host + "]" : pod.host) + ":" + std::to_string(*port);
  return places;
}

Result<ClusterAccess> read_access(const ApiPlaces& places) {
  ClusterAccess access;
  access.url = places.url;
  TRY_ASSIGN(const std::string token, read_bounded(places.token_file, kMaxToken));
  access.token = trim(token);
  if (!is_token(access.token)) return fail(ErrorCode::data_corrupt, places.token_file + " holds no token");
  TRY_ASSIGN(access.ca_pem, read_bounded(places.ca_file, kMaxCa));
  return access;
}

Result<ClusterAccess> in_cluster_access(const InClusterPlaces& places) {
  TRY_ASSIGN(const ApiPlaces known, api_places({}, places));
  return read_access(known);
}

}  // namespace neuron::kube
