#include "test/fakes/fake_kubelet.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <utility>

namespace neuron::fakes {
namespace {

using OnStep = std::function<void(AdmissionStep, const std::string& resource)>;

// Counts accepted registrations, and calls on_step around the calls of an admission.
class WatchedClient final : public sim::PluginClient {
 public:
  WatchedClient(std::string resource, std::string path, OnStep on_step, std::function<void()> on_accepted)
      : PluginClient(std::move(resource), std::move(path)),
        on_step_(std::move(on_step)),
        on_accepted_(std::move(on_accepted)) {}

  // The last step of a registration that can fail.
  Result<sim::PluginOptions> options(const grpc::ServerContext& register_call) override {
    auto answer = PluginClient::options(register_call);
    if (answer) on_accepted_();
    return answer;
  }
  Result<std::vector<std::string>> preferred(const std::vector<std::string>& available,
                                             const std::vector<std::string>& must_include, int size) override {
    step(AdmissionStep::before_preferred);
    return PluginClient::preferred(available, must_include, size);
  }
  Result<v1beta1::ContainerAllocateResponse> allocate(const std::vector<std::string>& ids) override {
    step(AdmissionStep::before_allocate);
    auto answer = PluginClient::allocate(ids);
    step(AdmissionStep::after_allocate);
    return answer;
  }

 private:
  void step(AdmissionStep step) const {
    if (on_step_) on_step_(step, resource());
  }

  const OnStep on_step_;
  const std::function<void()> on_accepted_;
};

// Answers every call with bytes that are no protobuf message.
class GarbageService final
    : public v1::PodResourcesLister::WithRawCallbackMethod_List<
          v1::PodResourcesLister::WithRawCallbackMethod_GetAllocatableResources<v1::PodResourcesLister::Service>> {
 public:
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const grpc::ByteBuffer* /*request*/,
                                 grpc::ByteBuffer* answer) override {
    return garble(context, answer);
  }
  grpc::ServerUnaryReactor* GetAllocatableResources(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* /*request*/,
                                                    grpc::ByteBuffer* answer) override {
    return garble(context, answer);
  }

 private:
  static grpc::ServerUnaryReactor* garble(grpc::CallbackServerContext* context, grpc::ByteBuffer* answer) {
    const grpc::Slice bytes("\xff\xff\xff\xff garbage \x0f");  // a field number out of range
    *answer = grpc::ByteBuffer(&bytes, 1);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// Makes a message of 20 MiB.
template <typename Repeated>
void pad(Repeated& devices) {
  constexpr int kDevices = 20;  // with ids of 1 MiB each
  for (int i = 0; i < kDevices; ++i) {
    v1::ContainerDevices& device = *devices.Add();
    device.set_resource_name("example.com/padding");
    device.add_device_ids(fmt::format("{}-{:0>{}}", i, "", 1 << 20));
    device.mutable_topology()->add_nodes()->set_id(0);
  }
}

}  // namespace

class FaultyPluginServer final : public sim::PluginServer {
 public:
  FaultyPluginServer(sim::DeviceManager& manager, const FakeKubeletOptions& options, std::string dir,
                     RegisterFault fault)
      : PluginServer(manager, options, std::move(dir)), on_step_(options.on_step), fault_(fault) {}
  ~FaultyPluginServer() override { stop(); }

  void stop() override {
    {
      MutexLock lock(mutex_);
      ending_ = true;
      released_.notify_all();
    }
    PluginServer::stop();
  }

  // Takes effect for the next call; going to or from `closes` binds the socket anew.
  Result<void> set_fault(RegisterFault fault) {
    {
      MutexLock lock(mutex_);
      const bool rebind = (fault == RegisterFault::closes) != (fault_ == RegisterFault::closes);
      fault_ = fault;
      released_.notify_all();
      if (!rebind || ending_) return {};
    }
    close_socket();
    return listen();
  }

  int registrations(const std::string& resource) {
    MutexLock lock(mutex_);
    return registrations_[resource];
  }

  bool drop_client(const std::string& resource) {
    const auto client = client_of(resource);
    if (client) client->disconnect();
    return client != nullptr;
  }

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* answer) override {
    RegisterFault fault = RegisterFault::none;
    {
      MutexLock lock(mutex_);
      while (fault_ == RegisterFault::hangs && !ending_) released_.wait(mutex_);
      if (!ending_) fault = fault_;
    }
    if (fault != RegisterFault::error) return PluginServer::Register(context, request, answer);
    return refuse(request->resource_name(),
                  make_error(ErrorCode::internal, "registration refused by a simulated fault"));
  }

 protected:
  Result<void> listen() override {
    {
      MutexLock lock(mutex_);
      if (fault_ != RegisterFault::closes) return PluginServer::listen();
    }
    TRY_ASSIGN(closing_, ClosingSocket::open(socket_path()));
    return {};
  }
  void close_socket() override {
    PluginServer::close_socket();
    closing_.reset();
  }
  std::shared_ptr<sim::PluginClient> make_client(const std::string& resource, const std::string& path) override {
    return std::make_shared<WatchedClient>(resource, path, on_step_, [this, resource] {
      MutexLock lock(mutex_);
      ++registrations_[resource];
    });
  }

 private:
  const OnStep on_step_;
  std::unique_ptr<ClosingSocket> closing_;  // listens instead of the server under RegisterFault::closes

  Mutex mutex_;
  std::condition_variable_any released_;  // with mutex_: fault_ or ending_ changed
  RegisterFault fault_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::map<std::string, int> registrations_ GUARDED_BY(mutex_);
};

class FaultyPodResources final : public sim::PodResourcesServer {
 public:
  FaultyPodResources(sim::DeviceManager& manager, std::string dir, PodResourcesFault fault)
      : PodResourcesServer(manager, std::move(dir)), fault_(fault) {}
  ~FaultyPodResources() override { stop(); }

  void stop() override {
    {
      MutexLock lock(mutex_);
      ending_ = true;
      released_.notify_all();
    }
    PodResourcesServer::stop();
  }

  // Takes effect for the next call; going to or from `garbage` binds the socket anew.
  Result<void> set_fault(PodResourcesFault fault) {
    {
      MutexLock lock(mutex_);
      const bool rebind = (fault == PodResourcesFault::garbage) != (fault_ == PodResourcesFault::garbage);
      fault_ = fault;
      released_.notify_all();
      if (!rebind || ending_) return {};
    }
    close_socket();
    return listen();
  }

  [[nodiscard]] int list_calls() const { return list_calls_; }

  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest* request,
                    v1::ListPodResourcesResponse* answer) override {
    ++list_calls_;
    manager().notify();
    PodResourcesFault fault = PodResourcesFault::none;
    if (grpc::Status status = admit_call(fault); !status.ok()) return status;
    grpc::Status status = PodResourcesServer::List(context, request, answer);
    if (fault == PodResourcesFault::oversized) pad(*answer->add_pod_resources()->add_containers()->mutable_devices());
    return status;
  }
  grpc::Status GetAllocatableResources(grpc::ServerContext* context, const v1::AllocatableResourcesRequest* request,
                                       v1::AllocatableResourcesResponse* answer) override {
    PodResourcesFault fault = PodResourcesFault::none;
    if (grpc::Status status = admit_call(fault); !status.ok()) return status;
    grpc::Status status = PodResourcesServer::GetAllocatableResources(context, request, answer);
    if (fault == PodResourcesFault::oversized) pad(*answer->mutable_devices());
    return status;
  }

 protected:
  grpc::Service& service() override {
    MutexLock lock(mutex_);
    if (fault_ != PodResourcesFault::garbage) return *this;
    return garbage_;
  }

 private:
  // The fault to act on, after hanging if that is the fault; a status other than OK is the answer.
  grpc::Status admit_call(PodResourcesFault& fault) {
    MutexLock lock(mutex_);
    while (fault_ == PodResourcesFault::hangs && !ending_) released_.wait(mutex_);
    if (ending_) return {grpc::UNAVAILABLE, "the kubelet ends"};
    fault = fault_;
    if (fault == PodResourcesFault::error) return {grpc::UNKNOWN, "refused by a simulated fault"};
    return grpc::Status::OK;
  }

  std::atomic<int> list_calls_ = 0;
  GarbageService garbage_;

  Mutex mutex_;
  std::condition_variable_any released_;  // with mutex_: fault_ or ending_ changed
  PodResourcesFault fault_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
};

FakeKubelet::FakeKubelet(const std::string& dir, FakeKubeletOptions options)
    : Kubelet(dir, options), fake_options_(std::move(options)), faults_(fake_options_.faults) {}

Result<std::unique_ptr<FakeKubelet>> FakeKubelet::start(const std::string& dir, FakeKubeletOptions options) {
  std::unique_ptr<FakeKubelet> kubelet(new FakeKubelet(dir, std::move(options)));
  TRY(kubelet->come_up());
  return kubelet;
}

std::shared_ptr<sim::PluginServer> FakeKubelet::make_plugin_server() {
  MutexLock lock(mutex_);
  auto server =
      std::make_shared<FaultyPluginServer>(manager(), fake_options_, device_plugin_dir(), faults_.registration);
  plugins_ = server;
  return server;
}

std::shared_ptr<sim::PodResourcesServer> FakeKubelet::make_pod_resources_server() {
  MutexLock lock(mutex_);
  auto server = std::make_shared<FaultyPodResources>(manager(), pod_resources_dir(), faults_.pod_resources);
  pod_resources_ = server;
  return server;
}

std::shared_ptr<FaultyPluginServer> FakeKubelet::plugins() {
  MutexLock lock(mutex_);
  return plugins_.lock();
}

std::shared_ptr<FaultyPodResources> FakeKubelet::pod_resources() {
  MutexLock lock(mutex_);
  return pod_resources_.lock();
}

int FakeKubelet::registrations(const std::string& resource) {
  const auto server = plugins();
  return server ? server->registrations(resource) : 0;
}

int FakeKubelet::list_calls() {
  const auto server = pod_resources();
  return server ? server->list_calls() : 0;
}

bool FakeKubelet::drop_client(const std::string& resource) {
  const auto server = plugins();
  return server && server->drop_client(resource);
}

Result<void> FakeKubelet::set_faults(const KubeletFaults& faults) {
  {
    MutexLock lock(mutex_);
    faults_ = faults;
  }
  if (const auto server = pod_resources()) TRY(server->set_fault(faults.pod_resources));
  if (const auto server = plugins()) TRY(server->set_fault(faults.registration));
  return {};
}

Result<std::unique_ptr<ClosingSocket>> ClosingSocket::open(const std::string& path) {
  TRY(sim::check_socket_path(path));
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Fd stop(::eventfd(0, EFD_CLOEXEC));
  if (!listener.valid() || !stop.valid()) return fail(error_from_errno(errno, "making a socket"));
  ::unlink(path.c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), 16) != 0) {
    return fail(error_from_errno(errno, "listening on " + path));
  }
  return std::unique_ptr<ClosingSocket>(new ClosingSocket(path, std::move(listener), std::move(stop)));
}

ClosingSocket::~ClosingSocket() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
  ::unlink(path_.c_str());
}

ClosingSocket::ClosingSocket(std::string path, Fd listener, Fd stop)
    : path_(std::move(path)), listener_(std::move(listener)), stop_(std::move(stop)), thread_([this] {
        pollfd watched[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        while (::poll(watched, 2, -1) >= 0 || errno == EINTR) {
          if (watched[1].revents != 0) return;
          if (watched[0].revents != 0) Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
        }
      }) {}

}  // namespace neuron::fakes
