#include "tools/neuron-sim/kubelet/kubelet.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/core/hardware.h"

namespace neuron::sim {
namespace {

constexpr std::string_view kAdminAccess = "admin:";

// Kubernetes' IsExtendedResourceName: domain/name, the domain not Kubernetes' own.
bool is_extended_resource_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || name.starts_with("requests.")) return false;
  const std::string_view domain = name.substr(0, slash);
  constexpr std::string_view kOwn = "kubernetes.io";
  return is_qualified_part(domain, 253) && is_qualified_part(name.substr(slash + 1)) && !domain.ends_with(kOwn);
}

void fill(v1::ContainerDevices& out, const DeviceId& device) {
  out.set_resource_name(device.resource);
  out.add_device_ids(device.id);
  if (device.numa_node) out.mutable_topology()->add_nodes()->set_id(*device.numa_node);
}

// The whole claim for each container that uses it; the list of CDI ids grows from one device to the next, as in the
// kubelet (docs/reference/kubelet.md#podresources).
void fill(v1::DynamicResource& out, const std::string& ns, const std::string& claim,
          const std::vector<std::string>& devices) {
  out.set_claim_namespace(ns);
  out.set_claim_name(claim);
  std::vector<std::string> ids;
  for (std::string device : devices) {
    const bool is_admin = device.starts_with(kAdminAccess);
    if (is_admin) device.erase(0, kAdminAccess.size());
    v1::ClaimResource& entry = *out.add_claim_resources();
    entry.set_driver_name(std::string(core::kDefaultDriverName));
    entry.set_pool_name("node");
    entry.set_device_name(device);
    const auto access = is_admin ? core::ClaimAccess::admin : core::ClaimAccess::use;
    ids.push_back(core::claim_cdi_kind(core::kDefaultDriverName) + '=' + core::claim_cdi_name(claim, device, access));
    for (const std::string& id : ids) entry.add_cdi_devices()->set_name(id);
  }
}

void fill(v1::PodResources& out, const PodView& pod) {
  out.set_name(pod.name);
  out.set_namespace_(pod.ns);
  for (const ContainerView& container : pod.containers) {
    if (container.kind == ContainerKind::init) continue;  // only those that keep running are shown
    auto* view = out.add_containers();
    view->set_name(container.name);
    for (const DeviceId& device : container.devices) fill(*view->add_devices(), device);
    for (const auto& [claim, devices] : container.claims) {
      fill(*view->add_dynamic_resources(), pod.ns, claim, devices);
    }
  }
}

}  // namespace

Result<void> make_directory(const std::string& path) {
  std::string prefix;
  for (const auto& part : std::filesystem::path(path)) {
    prefix = (std::filesystem::path(prefix) / part).string();
    if (::mkdir(prefix.c_str(), 0750) != 0 && errno != EEXIST && errno != EISDIR) {
      return fail(error_from_errno(errno, "creating " + prefix));
    }
  }
  if (std::error_code ignored; !std::filesystem::is_directory(path, ignored)) {
    return fail(ErrorCode::invalid_argument, path + " is not a directory");
  }
  return {};
}

Result<void> wipe_sockets(const std::string& dir) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (std::error_code ignored;
        std::filesystem::symlink_status(entry.path(), ignored).type() != std::filesystem::file_type::socket) {
      continue;
    }
    if (::unlink(entry.path().c_str()) != 0 && errno != ENOENT) {
      return fail(error_from_errno(errno, "removing " + entry.path().string()));
    }
  }
  if (error) return fail(error_from_errno(error.value(), "reading " + dir));
  return {};
}

bool is_listening(const std::string& socket_path) {
  if (!check_socket_path(socket_path)) return false;
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size());
  const auto* general = reinterpret_cast<const sockaddr*>(&address);  // the type that connect() takes
  return ::connect(socket.get(), general, sizeof(address)) == 0 || errno == EAGAIN;
}

Result<void> check_socket_path(const std::string& path) {
  if (path.size() < sizeof(sockaddr_un::sun_path)) return {};
  return fail(ErrorCode::invalid_argument, path + " is longer than a unix socket address may be (107 bytes)");
}

Result<void> SocketServer::listen(const std::string& path, grpc::Service& service) {
  TRY(check_socket_path(path));
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  server_ = builder.BuildAndStart();
  if (!server_) return fail(ErrorCode::unavailable, "cannot listen on " + path);
  return {};
}

void SocketServer::close() {
  constexpr std::chrono::seconds kShutdown{1};
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
  server_.reset();
}

PluginServer::PluginServer(DeviceManager& manager, KubeletOptions options, std::string socket_dir)
    : manager_(manager), options_(std::move(options)), socket_dir_(std::move(socket_dir)) {}

PluginServer::~PluginServer() {
  PluginServer::stop();
}

Result<void> PluginServer::start() {
  TRY(make_directory(socket_dir_));
  TRY(wipe_sockets(socket_dir_));
  return listen();
}

Result<void> PluginServer::listen() {
  return server_.listen(socket_path(), *this);
}

void PluginServer::close_socket() {
  server_.close();
}

std::shared_ptr<PluginClient> PluginServer::make_client(const std::string& resource, const std::string& path) {
  return std::make_shared<PluginClient>(resource, path);
}

std::shared_ptr<PluginClient> PluginServer::client_of(const std::string& resource) {
  MutexLock lock(mutex_);
  const auto client = clients_.find(resource);
  return client == clients_.end() ? nullptr : client->second;
}

void PluginServer::stop() {
  std::vector<Stream> streams;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    clients_.clear();
    for (const Stream& stream : streams_) stream.client->disconnect();
  }
  close_socket();  // no Register can add a stream after this
  {
    MutexLock lock(mutex_);
    streams.swap(streams_);
  }
  for (Stream& stream : streams) {
    stream.client->disconnect();
    stream.thread.join();
  }
}

grpc::Status PluginServer::Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                                    v1beta1::Empty* /*answer*/) {
  const Result<void> accepted = accept(*context, *request);
  return accepted ? grpc::Status::OK : refuse(request->resource_name(), accepted.error());
}

grpc::Status PluginServer::refuse(const std::string& resource, const Error& reason) {
  manager_.event(fmt::format("refused {}: {}", resource, reason.message));
  return {grpc::UNKNOWN, reason.message};  // as every plain Go error arrives
}

Result<void> PluginServer::accept(const grpc::ServerContext& context, const v1beta1::RegisterRequest& request) {
  if (stopping_) return fail(ErrorCode::unavailable, "the kubelet ends");
  if (request.version() != "v1beta1") {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("requested API version \"{}\" is not supported by kubelet. Supported version is [\"v1beta1\"]",
                    request.version()));
  }
  if (!is_extended_resource_name(request.resource_name())) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the ResourceName \"{}\" is invalid", request.resource_name()));
  }
  return connect(context, request.resource_name(), socket_dir_ + "/" + request.endpoint());
}

Result<void> PluginServer::connect(const grpc::ServerContext& context, const std::string& resource,
                                   const std::string& path) {
  TRY(check_socket_path(path));
  const std::shared_ptr<PluginClient> client = make_client(resource, path);
  {
    MutexLock lock(mutex_);
    clients_[resource] = client;  // replaces an older client, whose stream lives on
  }
  Result<void> connected = client->dial(options_.dial_timeout, stopping_);
  PluginOptions options;
  if (connected) {
    if (const auto asked = client->options(context); asked) {
      options = *asked;
    } else {
      connected = fail(asked.error());
    }
  }
  if (!connected) {
    MutexLock lock(mutex_);
    clients_.erase(resource);  // whichever client it is
    return connected;
  }
  manager_.plugin_connected(resource, client, options);
  watch_in_background(client);
  manager_.notify();
  return {};
}

void PluginServer::watch_in_background(const std::shared_ptr<PluginClient>& client) {
  MutexLock lock(mutex_);
  std::erase_if(streams_, [](Stream& stream) {
    if (!*stream.ended) return false;
    stream.thread.join();
    return true;
  });
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  std::thread thread([this, client, ended] {
    run(client);
    *ended = true;
  });
  streams_.push_back({client, std::move(thread), ended});
}

void PluginServer::run(const std::shared_ptr<PluginClient>& client) {
  const std::string& resource = client->resource();
  const grpc::Status status =
      client->watch([&](const v1beta1::ListAndWatchResponse& message) { manager_.plugin_updated(resource, message); });
  if (stopping_) return;
  manager_.event(fmt::format("ListAndWatch of {} ended: {}", resource,
                             status.ok() ? "the plugin closed it" : error_from_status(status).message));
  std::shared_ptr<PluginClient> dropped;
  {
    MutexLock lock(mutex_);
    const auto current = clients_.find(resource);
    if (current == clients_.end()) return;
    // By name, so it may be the new client that is dropped: kubernetes/kubernetes#121994.
    dropped = current->second;
    clients_.erase(current);
  }
  dropped->disconnect();
  manager_.plugin_disconnected(resource);
}

PodResourcesServer::~PodResourcesServer() {
  PodResourcesServer::stop();
}

Result<void> PodResourcesServer::start() {
  TRY(make_directory(dir_));
  return listen();
}

void PodResourcesServer::stop() {
  close_socket();
}

grpc::Status PodResourcesServer::List(grpc::ServerContext* /*context*/, const v1::ListPodResourcesRequest* /*request*/,
                                      v1::ListPodResourcesResponse* answer) {
  manager_.update_allocated();  // the side effect
  for (const PodView& pod : manager_.pods()) fill(*answer->add_pod_resources(), pod);
  return grpc::Status::OK;
}

grpc::Status PodResourcesServer::GetAllocatableResources(grpc::ServerContext* /*context*/,
                                                         const v1::AllocatableResourcesRequest* /*request*/,
                                                         v1::AllocatableResourcesResponse* answer) {
  for (const DeviceId& device : manager_.allocatable_devices()) fill(*answer->add_devices(), device);
  return grpc::Status::OK;
}

Kubelet::Kubelet(const std::string& dir, KubeletOptions options)
    : dir_(dir), options_(std::move(options)), manager_(options_, checkpoint_path()) {}

Kubelet::~Kubelet() {
  go_down();
}

Result<std::unique_ptr<Kubelet>> Kubelet::start(const std::string& dir, KubeletOptions options) {
  std::unique_ptr<Kubelet> kubelet(new Kubelet(dir, std::move(options)));
  TRY(kubelet->come_up());
  return kubelet;
}

ResourceView Kubelet::resource_view(const std::string& resource) {
  const auto all = manager_.resources();
  const auto found = all.find(resource);
  return found == all.end() ? ResourceView{} : found->second;
}

std::shared_ptr<PluginServer> Kubelet::make_plugin_server() {
  return std::make_shared<PluginServer>(manager_, options_, device_plugin_dir());
}

std::shared_ptr<PodResourcesServer> Kubelet::make_pod_resources_server() {
  return std::make_shared<PodResourcesServer>(manager_, pod_resources_dir());
}

void Kubelet::go_down() {
  if (const auto plugins = std::exchange(plugins_, nullptr)) plugins->stop();
  if (const auto pod_resources = std::exchange(pod_resources_, nullptr)) pod_resources->stop();
  manager_.forget();
}

Result<void> Kubelet::come_up() {
  if (is_listening(kubelet_socket())) {
    return fail(ErrorCode::failed_precondition, "a kubelet answers on " + kubelet_socket() + "; stop it first");
  }
  manager_.restore();
  pod_resources_ = make_pod_resources_server();
  plugins_ = make_plugin_server();
  TRY(pod_resources_->start());
  TRY(plugins_->start());
  manager_.notify();
  return {};
}

Result<void> Kubelet::restart() {
  go_down();
  return come_up();
}

}  // namespace neuron::sim
