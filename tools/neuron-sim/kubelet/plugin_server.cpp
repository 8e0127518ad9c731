#include "tools/neuron-sim/kubelet/plugin_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tools/neuron-sim/kubelet/rpc_error.h"

namespace neuron::sim {
namespace {

constexpr std::chrono::seconds kShutdown{1};
constexpr std::size_t kMaxLabel = 63;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Letters, digits, "-", "_" and "."; alphanumeric at both ends.
bool is_qualified_part(std::string_view text, std::size_t max) {
  return !text.empty() && text.size() <= max && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

// Kubernetes' IsExtendedResourceName: domain/name, the domain not Kubernetes' own.
bool is_extended_resource_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || name.starts_with("requests.")) return false;
  const std::string_view domain = name.substr(0, slash);
  constexpr std::string_view kOwn = "kubernetes.io";
  return is_qualified_part(domain, 253) && is_qualified_part(name.substr(slash + 1), kMaxLabel) &&
         !domain.ends_with(kOwn);
}

}  // namespace

PluginServer::PluginServer(DeviceManager& manager, KubeletOptions options, std::string socket_dir)
    : manager_(manager),
      options_(std::move(options)),
      socket_dir_(std::move(socket_dir)),
      fault_(options_.faults.registration) {}

PluginServer::~PluginServer() {
  stop();
}

Result<void> PluginServer::start() {
  TRY(make_directory(socket_dir_));
  TRY(wipe_sockets(socket_dir_));
  return listen();
}

Result<void> PluginServer::listen() {
  const std::string path = socket_dir_ + "/kubelet.sock";
  TRY(check_socket_path(path));
  RegisterFault fault = RegisterFault::none;
  {
    MutexLock lock(mutex_);
    fault = fault_;
  }
  if (fault == RegisterFault::closes) {
    TRY_ASSIGN(closing_, ClosingSocket::open(path));
    return {};
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (!server_) return fail(ErrorCode::unavailable, "cannot listen on " + path);
  return {};
}

void PluginServer::close_socket() {
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
  server_.reset();
  closing_.reset();
}

void PluginServer::stop() {
  std::vector<Stream> streams;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    released_.notify_all();
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

Result<void> PluginServer::set_fault(RegisterFault fault) {
  bool rebind = false;
  {
    MutexLock lock(mutex_);
    rebind = (fault == RegisterFault::closes) != (fault_ == RegisterFault::closes);
    fault_ = fault;
    released_.notify_all();
  }
  if (!rebind || stopping_) return {};
  close_socket();
  return listen();
}

int PluginServer::registrations(const std::string& resource) {
  MutexLock lock(mutex_);
  const auto count = registrations_.find(resource);
  return count == registrations_.end() ? 0 : count->second;
}

bool PluginServer::drop_client(const std::string& resource) {
  MutexLock lock(mutex_);
  const auto client = clients_.find(resource);
  if (client == clients_.end()) return false;
  client->second->disconnect();
  return true;
}

grpc::Status PluginServer::Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                                    v1beta1::Empty* /*answer*/) {
  const Result<void> accepted = accept(*context, *request);
  if (accepted) return grpc::Status::OK;
  manager_.event(fmt::format("refused {}: {}", request->resource_name(), accepted.error().message));
  return status_from_error(accepted.error());
}

Result<void> PluginServer::accept(const grpc::ServerContext& context, const v1beta1::RegisterRequest& request) {
  {
    MutexLock lock(mutex_);
    while (fault_ == RegisterFault::hangs && !stopping_) released_.wait(mutex_);
    if (stopping_) return fail(ErrorCode::unavailable, "the kubelet ends");
    if (fault_ == RegisterFault::error) return fail(ErrorCode::internal, "registration refused by a simulated fault");
  }
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
  const auto client = std::make_shared<PluginClient>(resource, path);
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
  ++registrations_[client->resource()];
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

}  // namespace neuron::sim
