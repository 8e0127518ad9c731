#include "plugin/dra/serve/driver.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <initializer_list>
#include <set>
#include <utility>

#include "agent/base/mutex.h"
#include "agent/base/parse.h"
#include "agent/rpc/calls.h"
#include "dra/v1/api.grpc.pb.h"
#include "dra/v1beta1/api.grpc.pb.h"
#include "dra_health/v1/api.grpc.pb.h"
#include "dra_health/v1alpha1/api.grpc.pb.h"
#include "plugin/kubelet/socket_file.h"
#include "pluginregistration/v1/api.grpc.pb.h"

namespace neuron::plugin::dra {
namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;
using std::chrono::milliseconds;

// ---- Claims

// A call about claims, finished exactly once: by its job, or when the server ends. gRPC's response may be written until
// then, and no longer. A peer that cancels the call stops the job.
class Call final : public grpc::ServerUnaryReactor {
 public:
  using Fill = std::function<grpc::Status()>;  // fills gRPC's response; not called once the call is finished

  [[nodiscard]] static std::shared_ptr<Call> make() {
    std::shared_ptr<Call> call(new Call);
    call->self_ = call;
    return call;
  }

  void finish(const Fill& fill) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (std::exchange(finished_, true)) return;
    Finish(fill());
  }
  void stop() { stop_.request_stop(); }
  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }

  void OnCancel() override { stop(); }
  void OnDone() override {
    const std::shared_ptr<Call> last = std::move(self_);  // `this` lives until the end of this scope at least
  }

 private:
  Call() = default;
  std::shared_ptr<Call> self_;  // gRPC's share
  std::stop_source stop_;
  Mutex mutex_;
  bool finished_ GUARDED_BY(mutex_) = false;
};

// The running calls, each on a thread of its own, so that a claim that waits for the API server or for hardware delays
// no other. Every call is finished before the server ends: one that is not holds up gRPC's shutdown forever. Shared
// with the jobs, which may outlive the server. Thread-safe.
class Calls : public std::enable_shared_from_this<Calls> {
 public:
  using Job = std::function<Call::Fill(const std::stop_token&)>;  // may block; owns all that it reads

  explicit Calls(Workers& workers) : workers_(workers) {}

  // The reactor that the handler gives to gRPC. UNAVAILABLE after close(), RESOURCE_EXHAUSTED beyond kMostCalls.
  [[nodiscard]] grpc::ServerUnaryReactor* start(Job job) EXCLUDES(mutex_) {
    const auto call = Call::make();
    if (const grpc::Status refused = enter(call); !refused.ok()) {
      call->finish([&refused] { return refused; });
      return call.get();
    }
    workers_.run([self = shared_from_this(), call, work = std::move(job)] {
      call->finish(work(call->stop_token()));
      self->leave(call);
    });
    return call.get();
  }

  // Accepts no new calls; waits for the running ones, then stops them, then answers UNAVAILABLE for those that do not
  // stop, whose jobs may still run. Returns within the sum of both times.
  void close(milliseconds patience, milliseconds after_stop) EXCLUDES(mutex_) {
    for (const auto& call : wait_until_none(patience)) call->stop();
    for (const auto& call : wait_until_none(after_stop)) {
      call->finish([] {
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the driver shut down during the call; try again");
      });
      leave(call);
    }
  }

  [[nodiscard]] std::size_t size() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return calls_.size();
  }

 private:
  [[nodiscard]] grpc::Status enter(const std::shared_ptr<Call>& call) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (closed_) return {grpc::StatusCode::UNAVAILABLE, "the driver is shutting down; try again"};
    if (calls_.size() >= DraServer::kMostCalls) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              "more than " + std::to_string(DraServer::kMostCalls) + " concurrent calls; try again"};
    }
    calls_.insert(call);
    return grpc::Status::OK;
  }
  void leave(const std::shared_ptr<Call>& call) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    calls_.erase(call);
    if (calls_.empty()) none_.notify_all();
  }
  [[nodiscard]] std::set<std::shared_ptr<Call>> wait_until_none(milliseconds patience) EXCLUDES(mutex_) {
    const SteadyTime until = std::chrono::steady_clock::now() + patience;
    const MutexLock lock(mutex_);
    closed_ = true;
    while (!calls_.empty() && none_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
    }
    return calls_;
  }

  Workers& workers_;  // until close()
  mutable Mutex mutex_;
  std::condition_variable_any none_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<Call>> calls_ GUARDED_BY(mutex_);
};

template <typename Request>
std::vector<ClaimRef> claims_of(const Request& request) {
  std::vector<ClaimRef> claims;
  claims.reserve(static_cast<std::size_t>(request.claims_size()));
  for (const auto& claim : request.claims()) claims.push_back({claim.namespace_(), claim.name(), claim.uid()});
  return claims;
}

template <typename Message>
void fill(Message& message, PrepareAnswer answer) {
  message.set_error(std::move(answer.error));
  for (PreparedDevice& device : answer.devices) {
    auto* out = message.add_devices();
    for (std::string& request : device.requests) out->add_request_names(std::move(request));
    out->set_pool_name(std::move(device.pool));
    out->set_device_name(std::move(device.device));
    for (std::string& id : device.cdi_ids) out->add_cdi_device_ids(std::move(id));
    if (device.share_id) out->set_share_id(*std::move(device.share_id));
  }
}

template <typename Message>
void fill(Message& message, std::string error) {
  message.set_error(std::move(error));
}

// gRPC's response is written by it alone: the job may outlive it.
template <typename Response, typename Answers>
Call::Fill fill_response(Response* response, Answers answers) {
  return [response, given = std::make_shared<Answers>(std::move(answers))] {
    if (!*given) return rpc::to_status(given->error());
    for (auto& [uid, answer] : **given) fill((*response->mutable_claims())[uid], std::move(answer));
    return grpc::Status::OK;
  };
}

// The DRAPlugin service of one version. `calls` and `claims` must outlive its server; `claims` also every job.
template <typename Service, typename PrepareRequest, typename PrepareResponse, typename UnprepareRequest,
          typename UnprepareResponse>
class ClaimService final : public Service::CallbackService {
 public:
  ClaimService(ClaimCalls& claims, Calls& calls) : claims_(claims), calls_(calls) {}

  grpc::ServerUnaryReactor* NodePrepareResources(grpc::CallbackServerContext* /*context*/,
                                                 const PrepareRequest* request, PrepareResponse* response) override {
    return calls_.start([&claims = claims_, asked = claims_of(*request), response](const std::stop_token& stop) {
      return fill_response(response, prepare_all(claims, asked, stop));
    });
  }
  grpc::ServerUnaryReactor* NodeUnprepareResources(grpc::CallbackServerContext* /*context*/,
                                                   const UnprepareRequest* request,
                                                   UnprepareResponse* response) override {
    return calls_.start([&claims = claims_, asked = claims_of(*request), response](const std::stop_token& /*stop*/) {
      return fill_response(response, unprepare_all(claims, asked));
    });
  }

 private:
  ClaimCalls& claims_;
  Calls& calls_;
};
using ClaimServiceV1 = ClaimService<v1::DRAPlugin, v1::NodePrepareResourcesRequest, v1::NodePrepareResourcesResponse,
                                    v1::NodeUnprepareResourcesRequest, v1::NodeUnprepareResourcesResponse>;
using ClaimServiceV1beta1 =
    ClaimService<v1beta1::DRAPlugin, v1beta1::NodePrepareResourcesRequest, v1beta1::NodePrepareResourcesResponse,
                 v1beta1::NodeUnprepareResourcesRequest, v1beta1::NodeUnprepareResourcesResponse>;

// ---- Health

// Of either version, which are the same but for their names.
template <typename Status>
Status status_of(DeviceHealth::State state) {
  return static_cast<Status>(state == DeviceHealth::State::healthy     ? v1alpha1::HEALTHY
                             : state == DeviceHealth::State::unhealthy ? v1alpha1::UNHEALTHY
                                                                       : v1alpha1::UNKNOWN);
}

template <typename Response>
Response to_response(const HealthList& list) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Response response;
  for (const DeviceHealth& one : list.devices) {
    auto* device = response.add_devices();
    device->mutable_device()->set_pool_name(list.pool);
    device->mutable_device()->set_device_name(one.device);
    device->set_health(status_of<decltype(device->health())>(one.state));
    device->set_last_updated_time(std::chrono::duration_cast<std::chrono::seconds>(now).count());
    device->set_message(one.message);
  }
  return response;
}

// Every open stream gets the hub's newest list as a whole, and again at each HealthHub::repeat().
template <typename Service, typename Request, typename Response>
class HealthService final : public Service::CallbackService {
 public:
  explicit HealthService(HealthHub& hub) : hub_(hub) {}

  grpc::ServerWriteReactor<Response>* NodeWatchResources(grpc::CallbackServerContext* /*context*/,
                                                         const Request* /*request*/) override {
    using Stream = rpc::ListStream<Response, HealthList>;
    const auto stream = Stream::open(
        hub_, to_response<Response>, [] {}, [](typename Stream::End /*end*/) {});
    Stream::join(stream);
    return stream.get();
  }

 private:
  HealthHub& hub_;
};
using HealthServiceV1 =
    HealthService<::v1::DRAResourceHealth, ::v1::NodeWatchResourcesRequest, ::v1::NodeWatchResourcesResponse>;
using HealthServiceV1alpha1 = HealthService<v1alpha1::DRAResourceHealth, v1alpha1::NodeWatchResourcesRequest,
                                            v1alpha1::NodeWatchResourcesResponse>;

// ---- Registration

// Gives the driver's name and the path of the claims' socket, which must be served already. Answers at once.
class RegistrationService final : public pluginregistration::Registration::CallbackService {
 public:
  RegistrationService(std::string driver, std::string endpoint, std::function<void(RegistrationResult)> on_result)
      : driver_(std::move(driver)), endpoint_(std::move(endpoint)), on_result_(std::move(on_result)) {}

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const pluginregistration::InfoRequest* /*request*/,
                                    pluginregistration::PluginInfo* response) override {
    response->set_type("DRAPlugin");
    response->set_name(driver_);
    response->set_endpoint(endpoint_);
    // The kubelet takes the first of each service that it knows (docs/reference/kubelet.md#dra).
    for (const char* version :
         {"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}) {
      response->add_supported_versions(version);
    }
    return finished(context);
  }
  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
      pluginregistration::RegistrationStatusResponse* /*response*/) override {
    constexpr std::size_t kMaxError = 500;
    on_result_({request->plugin_registered(), printable(request->error(), kMaxError)});
    return finished(context);
  }

 private:
  static grpc::ServerUnaryReactor* finished(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  const std::string driver_;
  const std::string endpoint_;
  const std::function<void(RegistrationResult)> on_result_;
};

// ---- Sockets

// gRPC would unlink a socket in its way even while another process listens on it.
Result<std::unique_ptr<grpc::Server>> serve(const std::string& directory, const std::string& path,
                                            std::initializer_list<grpc::Service*> services) {
  constexpr int kMaxRequestBytes = 1 << 20;  // kMostClaims claims with the longest names are a third of it
  if (socket_state(path) == SocketState::listening) {
    return fail(ErrorCode::failed_precondition,
                path + ": another instance of this driver listens on it; give each instance its own --pod-uid");
  }
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
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
  constexpr milliseconds kPeersMayLeave{400};  // calls and streams have ended by then; peers may be stuck
  if (!server) return;
  server->Shutdown(std::chrono::system_clock::now() + kPeersMayLeave);
  server->Wait();
  server.reset();
}

}  // namespace

struct DraServer::Services {
  Services(const std::string& driver, const std::string& endpoint, const Parts& parts)
      : calls(std::make_shared<Calls>(parts.workers)),
        v1(parts.claims, *calls),
        v1beta1(parts.claims, *calls),
        health_v1(parts.health),
        health_v1alpha1(parts.health),
        registration(driver, endpoint, parts.on_result) {}

  const std::shared_ptr<Calls> calls;
  ClaimServiceV1 v1;
  ClaimServiceV1beta1 v1beta1;
  HealthServiceV1 health_v1;
  HealthServiceV1alpha1 health_v1alpha1;
  RegistrationService registration;
  std::unique_ptr<grpc::Server> claims_server;
  std::unique_ptr<grpc::Server> registration_server;
};

DraServer::DraServer(SocketNames names, const std::string& driver, const Parts& parts)
    : names_(std::move(names)),
      health_(parts.health),
      services_(std::make_unique<Services>(driver, names_.claims_path(), parts)) {}

Result<std::unique_ptr<DraServer>> DraServer::start(const SocketNames& names, const std::string& driver,
                                                    const Parts& parts) {
  std::unique_ptr<DraServer> server(new DraServer(names, driver, parts));
  Services& services = *server->services_;
  TRY_ASSIGN(services.claims_server,
             serve(names.claims_dir, names.claims_path(),
                   {&services.v1, &services.v1beta1, &services.health_v1, &services.health_v1alpha1}));
  TRY(server->serve_registration_again());
  return server;
}

Result<void> DraServer::serve_registration_again() {
  shut_down(services_->registration_server);
  TRY_ASSIGN(services_->registration_server,
             serve(names_.registry_dir, names_.registration_path(), {&services_->registration}));
  return {};
}

std::size_t DraServer::calls() const {
  return services_->calls->size();
}

DraServer::~DraServer() {
  constexpr milliseconds kCallsMayEnd{1500}, kCallsMayStop{1000};
  shut_down(services_->registration_server);
  services_->calls->close(kCallsMayEnd, kCallsMayStop);
  health_.stop_watchers();
  shut_down(services_->claims_server);
}

}  // namespace neuron::plugin::dra
