#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim_port.h"
#include "plugin/dra/serve/blocking_calls.h"
#include "plugin/dra/serve/dra_service.h"
#include "plugin/dra/serve/health_service.h"
#include "plugin/dra/serve/registration_service.h"
#include "plugin/dra/serve/socket_names.h"

namespace neuron::plugin::dra {

// The kubelet's three services on the two sockets of one instance: claims and health on one, which the kubelet keeps a
// connection to (its end means to the kubelet that the driver has gone, so nothing here ends an idle one), registration
// on the other. Not synchronised: one owner thread.
class DraServer {
 public:
  struct Parts {
    ClaimPort& claims;
    HealthHub& health;
    BlockingCalls::Run run;  // on a thread of its own, at once
    RegistrationService::Tell tell;
  };

  // Serves claims, then registration: when the latter's socket appears, the kubelet may dial both. Errors: unavailable
  // (a directory cannot be written, naming it; another instance listens under the same name). `parts` must outlive it,
  // and `parts.claims` every call that still runs when it ends.
  [[nodiscard]] static Result<std::unique_ptr<DraServer>> start(const SocketNames& names, const std::string& driver,
                                                                const Parts& parts);
  // Registration first, so that the kubelet turns to another instance; calls that run are waited for, then stopped;
  // then the streams. Returns within 4 s.
  ~DraServer();
  DraServer(const DraServer&) = delete;
  DraServer& operator=(const DraServer&) = delete;

  // Its socket was lost. Errors: as start.
  [[nodiscard]] Result<void> serve_registration_again();

  [[nodiscard]] std::size_t calls() const { return calls_.running(); }

 private:
  DraServer(SocketNames names, const std::string& driver, const Parts& parts);

  const SocketNames names_;
  HealthHub& health_;
  BlockingCalls calls_;
  DraService<ProtocolV1> v1_;
  DraService<ProtocolV1beta1> v1beta1_;
  HealthService health_service_;
  RegistrationService registration_service_;
  std::unique_ptr<grpc::Server> claims_server_;
  std::unique_ptr<grpc::Server> registration_server_;
};

}  // namespace neuron::plugin::dra
