#include "plugin/dra/serve/dra_server.h"

#include <chrono>
#include <initializer_list>

#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin::dra {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCallsMayEnd{1500};
constexpr milliseconds kCallsMayStop{1000};
constexpr milliseconds kPeersMayLeave{400};  // everything of ours has ended by then; peers may be stuck
constexpr int kMostRequestBytes = 1 << 20;   // kMostClaims claims with the longest names are a third of it

// gRPC unlinks a socket that is in its way even while somebody listens on it.
Result<std::unique_ptr<grpc::Server>> serve(const std::string& directory, const std::string& path,
                                            std::initializer_list<grpc::Service*> services) {
  if (socket_state(path) == SocketState::listening) {
    return fail(ErrorCode::failed_precondition,
                path + ": another instance of this driver listens on it; give each instance its own --pod-uid");
  }
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);  // no connection ends because its peer pings often
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  for (grpc::Service* service : services) builder.RegisterService(service);
  auto server = builder.BuildAndStart();
  if (!server) {
    return fail(
        ErrorCode::unavailable,
        directory +
            ": cannot create a socket there; check that the directory is writable and its file system has free inodes");
  }
  return server;
}

void shut_down(std::unique_ptr<grpc::Server>& server) {
  if (!server) return;
  server->Shutdown(std::chrono::system_clock::now() + kPeersMayLeave);
  server->Wait();
  server.reset();
}

}  // namespace

DraServer::DraServer(SocketNames names, const std::string& driver, const Parts& parts)
    : names_(std::move(names)),
      health_(parts.health),
      calls_(parts.run),
      v1_(parts.claims, calls_),
      v1beta1_(parts.claims, calls_),
      health_service_(parts.health),
      registration_service_(driver, names_.claims_path(), parts.tell) {}

Result<std::unique_ptr<DraServer>> DraServer::start(const SocketNames& names, const std::string& driver,
                                                    const Parts& parts) {
  std::unique_ptr<DraServer> server(new DraServer(names, driver, parts));
  TRY_ASSIGN(server->claims_server_,
             serve(names.claims_dir, names.claims_path(), {&server->v1_, &server->v1beta1_, &server->health_service_}));
  TRY(server->serve_registration_again());
  return server;
}

Result<void> DraServer::serve_registration_again() {
  shut_down(registration_server_);
  TRY_ASSIGN(registration_server_, serve(names_.registry_dir, names_.registration_path(), {&registration_service_}));
  return {};
}

DraServer::~DraServer() {
  shut_down(registration_server_);
  calls_.close(kCallsMayEnd, kCallsMayStop);
  health_.stop_watchers();
  shut_down(claims_server_);
}

}  // namespace neuron::plugin::dra
