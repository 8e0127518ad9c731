#include "plugin/dra/server_rules.h"

namespace neuron::plugin::dra {

using kube::ServerVersion;

Result<SliceShape> shape_for(const ServerVersion& server) {
  if (server < ServerVersion{1, 34, 0}) {
    return fail(ErrorCode::failed_precondition, "the API server is " + server.text() +
                                                    ": dynamic resource allocation as this driver speaks it "
                                                    "(resource.k8s.io/v1) begins with 1.34");
  }
  if (server < ServerVersion{1, 35, 0}) return SliceShape::combined;
  // The scheduler that belongs to these panics on claims for all devices where there are counters.
  if (server < ServerVersion{1, 35, 6}) return SliceShape::plain;
  if (server >= ServerVersion{1, 36, 0} && server < ServerVersion{1, 36, 2}) return SliceShape::plain;
  return SliceShape::split;
}

Result<void> check_kubelet(const ServerVersion& kubelet) {
  if (kubelet >= ServerVersion{1, 34, 2}) return {};
  if (kubelet < ServerVersion{1, 34, 0}) {
    return fail(ErrorCode::failed_precondition,
                "this node's kubelet is " + kubelet.text() + ": dynamic resource allocation needs 1.34.2 or newer");
  }
  return fail(ErrorCode::failed_precondition,
              "this node's kubelet is " + kubelet.text() +
                  ", which loses every driver for good after 30 minutes: 1.34.2 or newer is needed");
}

}  // namespace neuron::plugin::dra
