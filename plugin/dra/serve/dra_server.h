#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/base/result.h"
#include "agent/base/workers.h"
#include "plugin/dra/claim/claim_request.h"
#include "plugin/dra/serve/kubelet_directories.h"
#include "plugin/dra/serve/node_board.h"

namespace neuron::plugin::dra {

// The kubelet's answer to the registration.
struct RegistrationResult {
  bool registered = false;
  std::string error;  // why not; foreign text made printable
};

// The kubelet's three services on the two sockets of one instance: claims (v1 and v1beta1) and health on one, to which
// the kubelet keeps a connection (when it ends, the driver has gone for the kubelet, so an idle connection stays open);
// registration on the other. Not synchronised: one owner thread.
class DraServer {
 public:
  static constexpr std::size_t kMostCalls = 128;  // concurrent calls about claims; no node has as many pods with claims

  struct Parts {
    ClaimCalls& claims;
    HealthHub& health;
    Workers& workers;                                   // for calls about claims, which may block
    std::function<void(RegistrationResult)> on_result;  // on gRPC's threads; must not block
  };

  // Serves claims, then registration: when the latter's socket appears, the kubelet may dial both. Errors: unavailable
  // (a directory is not writable, naming it); failed_precondition (another instance listens under the same name).
  // `parts` must outlive the server; `parts.claims` also every call that still runs when the server ends.
  [[nodiscard]] static Result<std::unique_ptr<DraServer>> start(const SocketNames& names, const std::string& driver,
                                                                const Parts& parts);
  // Ends registration first, so that the kubelet turns to another instance; then waits for running calls and stops
  // them; then ends the streams. Returns within 4 s.
  ~DraServer();
  DraServer(const DraServer&) = delete;
  DraServer& operator=(const DraServer&) = delete;

  // After the loss of its socket. Errors: as start.
  [[nodiscard]] Result<void> serve_registration_again();

  [[nodiscard]] std::size_t calls() const;  // about claims, that are not answered yet

 private:
  struct Services;  // gRPC
  DraServer(SocketNames names, const std::string& driver, const Parts& parts);

  const SocketNames names_;
  HealthHub& health_;
  const std::unique_ptr<Services> services_;
};

}  // namespace neuron::plugin::dra
