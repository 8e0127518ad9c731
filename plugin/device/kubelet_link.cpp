#include "plugin/device/kubelet_link.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "deviceplugin/v1beta1/api.grpc.pb.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRegisterDeadline{15000};  // the kubelet itself dials back for up to 10 s
constexpr milliseconds kListDeadline{2000};
constexpr milliseconds kAllocatableDeadline{2000};

// As KubeletPort::kubelet().
std::uint64_t identity_of(const std::string& socket) {
  struct stat info {};
  if (::stat(socket.c_str(), &info) != 0) return 0;
  const auto changed = static_cast<std::uint64_t>(info.st_ctim.tv_sec) * 1'000'000'000U +
                       static_cast<std::uint64_t>(info.st_ctim.tv_nsec);
  return std::max<std::uint64_t>(changed ^ (static_cast<std::uint64_t>(info.st_ino) << 1U), 1);
}

bool file_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 || errno != ENOENT;
}

bool may_listen(const std::string& path) {
  const SocketState state = socket_state(path);
  return state != SocketState::dead && state != SocketState::missing;
}

Error hangs(const std::string& directory) {
  return make_error(ErrorCode::unavailable, directory + " did not answer");
}

// Ends what `owned` holds where that may hang: its socket is unlinked, or connects. Left behind when it does.
template <typename Owned>
void end_bounded(const BoundedCalls& calls, std::shared_ptr<Owned> owned) {
  const auto held = std::make_shared<std::shared_ptr<Owned>>(std::move(owned));
  const auto end = [held] {
    held->reset();
    return true;
  };
  if (calls.hangs()) return calls.leave(end);
  static_cast<void>(calls.run(end, KubeletLink::kBudget));
}

// Calls `start` where its connect() may hang. False: it was not begun, as another call hangs.
template <typename Start>
bool start_bounded(const BoundedCalls& calls, const Start& start) {
  if (calls.hangs()) return false;
  const auto call = [start] {
    start();
    return true;
  };
  static_cast<void>(calls.run(call, KubeletLink::kBudget));
  return true;
}

class BoundedServer final : public ResourceServer {
 public:
  BoundedServer(std::unique_ptr<PluginServer> server, const BoundedCalls& calls)
      : server_(std::move(server)), calls_(calls) {}
  ~BoundedServer() override {
    server_->close();
    end_bounded(calls_, std::move(server_));
  }
  BoundedServer(const BoundedServer&) = delete;
  BoundedServer& operator=(const BoundedServer&) = delete;
  [[nodiscard]] const std::string& endpoint() const override { return server_->endpoint(); }
  [[nodiscard]] std::size_t watchers() const override { return server_->watchers(); }
  void end_streams() override { server_->end_streams(); }
  void close() override { server_->close(); }
  void publish(UnitListPtr units) override { server_->publish(std::move(units)); }

 private:
  std::shared_ptr<PluginServer> server_;
  const BoundedCalls& calls_;
};

constexpr int kMaxAnswerBytes = 64 << 10;  // the answer is empty

struct RegisterCall final : rpc::KeptCall {
  std::unique_ptr<v1beta1::Registration::Stub> stub;
  v1beta1::RegisterRequest request;
  v1beta1::Empty response;
};

}  // namespace

void KubeletRegistration::start(model::Resource resource, const std::string& endpoint,
                                std::chrono::milliseconds deadline, Done done) {
  auto owned = std::make_unique<RegisterCall>();
  RegisterCall* call = owned.get();
  call->channel = rpc::fresh_channel(socket_, kMaxAnswerBytes);
  call->stub = v1beta1::Registration::NewStub(call->channel);
  call->context.set_deadline(std::chrono::system_clock::now() + deadline);
  call->request.set_version("v1beta1");
  call->request.set_endpoint(endpoint);
  call->request.set_resource_name(std::string(model::resource_name(resource)));
  call->request.mutable_options()->set_get_preferred_allocation_available(true);
  call->request.mutable_options()->set_pre_start_required(model::has_cores(resource));
  calls_.keep(std::move(owned));
  call->stub->async()->Register(
      &call->context, &call->request, &call->response,
      [this, call, done = std::move(done), resource](const grpc::Status& status) {
        if (status.ok()) {
          done(std::nullopt);
        } else {
          done(rpc::to_error(status, "registering " + std::string(model::resource_name(resource))));
        }
        calls_.finished(call);
      });
}

KubeletLink::KubeletLink(Places places, std::string instance, const DevicePluginService::Parts& parts)
    : places_(std::move(places)),
      instance_(std::move(instance)),
      parts_(parts),
      registration_(std::make_shared<KubeletRegistration>(places_.directory + "/" + std::string(kKubeletSocket))),
      pod_resources_(std::make_shared<rpc::PodResourcesClient>(places_.pod_resources_socket)) {}

KubeletLink::~KubeletLink() {
  end_bounded(places_.directory_calls, std::move(registration_));
  end_bounded(places_.pod_resources_calls, std::move(pod_resources_));
}

Result<std::unique_ptr<ResourceServer>> KubeletLink::serve(model::Resource resource) {
  auto started = places_.directory_calls.run(
      [resource, directory = places_.directory, endpoint = endpoint_name(resource, instance_, ++endpoints_made_),
       parts = parts_] { return PluginServer::start(resource, directory, endpoint, parts); },
      kBudget);
  if (!started) return fail(hangs(places_.directory));
  TRY_ASSIGN(auto server, *std::move(started));
  return std::make_unique<BoundedServer>(std::move(server), places_.directory_calls);
}

bool KubeletLink::exists(const std::string& endpoint) const {
  return places_.directory_calls.run([path = places_.directory + "/" + endpoint] { return file_exists(path); }, kBudget)
      .value_or(true);
}

bool KubeletLink::is_listening(const std::string& socket) const {
  return places_.directory_calls.run([path = places_.directory + "/" + socket] { return may_listen(path); }, kBudget)
      .value_or(true);
}

std::uint64_t KubeletLink::kubelet() const {
  const std::string socket = places_.directory + "/" + std::string(kKubeletSocket);
  kubelet_ = places_.directory_calls.run([socket] { return identity_of(socket); }, kBudget).value_or(kubelet_);
  return kubelet_;
}

void KubeletLink::start_registration(model::Resource resource, const std::string& endpoint) {
  const auto done = [parts = parts_, resource, endpoint](std::optional<Error> error) {
    if (!error && parts.figures != nullptr) parts.figures->registered(model::resource_name(resource));
    parts.events.post(RegisterDone{resource, endpoint, std::move(error)});
  };
  const auto start = [registration = registration_, resource, endpoint, done] {
    registration->start(resource, endpoint, kRegisterDeadline, done);
  };
  if (!start_bounded(places_.directory_calls, start)) done(hangs(places_.directory));
}

void KubeletLink::ask_holders(SteadyTime now) {
  const auto done = [&events = parts_.events, now](Result<std::vector<model::Allocation>> answer) {
    events.post(HoldersListed{now, std::move(answer)});
  };
  const auto start = [client = pod_resources_, done] { client->list(kListDeadline, done); };
  if (!start_bounded(places_.pod_resources_calls, start)) done(fail(hangs(places_.pod_resources_socket)));
}

void KubeletLink::ask_allocatable(SteadyTime now) {
  const auto done = [&events = parts_.events, now](Result<model::Allocatable> answer) {
    events.post(AllocatableListed{now, std::move(answer)});
  };
  const auto start = [client = pod_resources_, done] { client->allocatable(kAllocatableDeadline, done); };
  if (!start_bounded(places_.pod_resources_calls, start)) done(fail(hangs(places_.pod_resources_socket)));
}

void KubeletLink::close_finished() {
  registration_->close_finished();
  pod_resources_->close_finished();
}

}  // namespace neuron::plugin
