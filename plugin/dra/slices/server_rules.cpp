#include "plugin/dra/slices/server_rules.h"

#include <optional>
#include <string>

#include "agent/base/parse.h"

namespace neuron::plugin::dra {

using kube::ServerVersion;

namespace {

Error no_server(std::string_view text) {
  return make_error(ErrorCode::invalid_argument,
                    "\"" + printable(text) +
                        "\" is not a server version: give 1.34 or newer and feature gates, for example 1.36.3 or "
                        "1.34.2,DRAPartitionableDevices=true; the other gate is DRADeviceTaints");
}

std::optional<bool> truth_of(std::string_view word) {
  if (word == "true") return true;
  if (word == "false") return false;
  return std::nullopt;
}

}  // namespace

Result<SliceShape> shape_for(const ServerVersion& server) {
  if (server < ServerVersion{1, 34, 0}) {
    return fail(ErrorCode::failed_precondition,
                "the API server is " + server.text() +
                    ": this driver needs resource.k8s.io/v1 (dynamic resource allocation), available from 1.34");
  }
  if (server < ServerVersion{1, 35, 0}) return SliceShape::combined;
  // The scheduler that belongs to these panics on claims for all devices where there are counters.
  if (server < ServerVersion{1, 35, 6}) return SliceShape::plain;
  if (server >= ServerVersion{1, 36, 0} && server < ServerVersion{1, 36, 2}) return SliceShape::plain;
  return SliceShape::split;
}

Result<LayoutOptions> layout_for(std::string_view server) {
  const auto parts = split(server, ',');
  const auto version = parts.empty() ? std::nullopt : kube::parse_git_version(parts.front());
  if (!version) return fail(no_server(server));
  bool counters = *version >= ServerVersion{1, 36, 0};  // both gates are open by default from then on
  LayoutOptions options{SliceShape::plain, counters};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const std::size_t at = part.find('=');
    const auto value = at == std::string_view::npos ? std::nullopt : truth_of(part.substr(at + 1));
    const std::string_view gate = part.substr(0, at);
    if (!value || (gate != "DRAPartitionableDevices" && gate != "DRADeviceTaints")) return fail(no_server(server));
    (gate == "DRADeviceTaints" ? options.taints : counters) = *value;
  }
  TRY_ASSIGN(const SliceShape shape, shape_for(*version));
  if (counters) options.shape = shape;
  return options;
}

Result<void> check_kubelet(const ServerVersion& kubelet) {
  if (kubelet >= ServerVersion{1, 34, 2}) return {};
  if (kubelet < ServerVersion{1, 34, 0}) {
    return fail(ErrorCode::failed_precondition,
                "this node's kubelet is " + kubelet.text() + ": dynamic resource allocation needs 1.34.2 or newer");
  }
  return fail(ErrorCode::failed_precondition,
              "this node's kubelet is " + kubelet.text() +
                  ", which stops calling every driver after 30 minutes: 1.34.2 or newer is needed");
}

}  // namespace neuron::plugin::dra
