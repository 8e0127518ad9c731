#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dra/v1/api.grpc.pb.h"
#include "dra/v1beta1/api.grpc.pb.h"
#include "dra_health/v1/api.grpc.pb.h"
#include "dra_health/v1alpha1/api.grpc.pb.h"
#include "plugin/kubelet/socket_file.h"
#include "pluginregistration/v1/api.grpc.pb.h"
#include "podresources/v1/api.grpc.pb.h"

namespace neuron::fakes {

// The kubelet's side of dynamic resource allocation on real sockets (docs/reference/kubelet.md#dra): looks for sockets
// in plugins_registry, asks who they are, says whether it takes them, keeps a connection to each, watches its health,
// and asks the newest that is connected to prepare claims. A socket that goes ends what it registered. Prepared claims
// are not kept. PodResources lists what list_pods() was given, and nothing before. Thread-safe.
class FakeDraKubelet {
 public:
  struct Options {
    std::vector<std::string> knows = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};  // versions that this kubelet speaks
    std::string refuses;  // said to every plugin instead of taking it; "" = takes them
    bool health = true;   // opens NodeWatchResources, of the first of these versions that the plugin offers
    std::vector<std::string> knows_health = {"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"};
    std::chrono::milliseconds look_every{20};
  };
  struct Claim {
    std::string claim_namespace;
    std::string name;
    std::string uid;
  };
  struct Device {
    std::vector<std::string> requests;
    std::string pool;
    std::string device;
    std::vector<std::string> cdi_ids;
  };
  struct Prepared {
    std::vector<Device> devices;
    std::string error;
  };
  struct Call {
    grpc::Status status;
    std::map<std::string, Prepared> claims;  // of an unprepare only errors
  };
  struct Health {
    v1alpha1::HealthStatus status = v1alpha1::UNKNOWN;
    std::string message;
  };
  // One plugin that was asked who it is.
  struct Plugin {
    std::string socket;
    std::string driver;
    std::string endpoint;
    std::string version, health_version;  // that are used; "" = none that this kubelet knows
    std::vector<std::string> offered;
    bool taken = false;
  };

  explicit FakeDraKubelet(const std::string& kubelet_dir) : FakeDraKubelet(kubelet_dir, Options{}) {}
  FakeDraKubelet(const std::string& kubelet_dir, Options options)
      : registry_(kubelet_dir + "/plugins_registry"), options_(std::move(options)) {
    std::filesystem::create_directories(kubelet_dir + "/pod-resources");
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + kubelet_dir + "/pod-resources/kubelet.sock", grpc::InsecureServerCredentials());
    builder.RegisterService(&pods_);
    pod_resources_ = builder.BuildAndStart();
    looking_ = std::jthread([this](const std::stop_token& stop) { look_for_plugins(stop); });
  }
  ~FakeDraKubelet() {
    looking_.request_stop();
    changed_.notify_all();
    looking_.join();
    drop_all_but({});
  }
  FakeDraKubelet(const FakeDraKubelet&) = delete;
  FakeDraKubelet& operator=(const FakeDraKubelet&) = delete;

  // The newest of a driver that is taken; nullopt: none.
  [[nodiscard]] std::optional<Plugin> plugin(const std::string& driver) const {
    const std::lock_guard lock(mutex_);
    const Connection* found = newest(driver);
    return found == nullptr ? std::nullopt : std::optional(found->plugin);
  }
  [[nodiscard]] std::size_t taken(const std::string& driver) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(known_.begin(), known_.end(), [&](const auto& one) {
      return one.second->plugin.taken && one.second->plugin.driver == driver;
    }));
  }
  [[nodiscard]] int registrations() const {  // how often a plugin was told that it was taken
    const std::lock_guard lock(mutex_);
    return registrations_;
  }
  // As of the last message of any instance, and forgotten when the stream of any ends.
  [[nodiscard]] std::map<std::string, Health> health() const {
    const std::lock_guard lock(mutex_);
    return health_;
  }
  [[nodiscard]] int health_messages() const {
    const std::lock_guard lock(mutex_);
    return health_messages_;
  }
  void refuse(std::string why) {
    const std::lock_guard lock(mutex_);
    options_.refuses = std::move(why);
  }
  // What PodResources lists from now on.
  void list_pods(::v1::ListPodResourcesResponse pods) { pods_.set(std::move(pods)); }
  // As a kubelet that starts: soon knows nobody any more, and asks all sockets again.
  void restart() {
    const std::lock_guard lock(mutex_);
    restarted_ = true;
  }

  // Waits for a condition over the methods above; false after `patience`.
  [[nodiscard]] bool wait_for(const std::function<bool()>& condition, std::chrono::seconds patience) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      if (condition()) return true;
      std::unique_lock lock(mutex_);
      if (std::chrono::steady_clock::now() > until) return false;
      changed_.wait_for(lock, options_.look_every);
    }
  }

  [[nodiscard]] Call prepare(const std::string& driver, const std::vector<Claim>& claims,
                             std::chrono::milliseconds timeout = std::chrono::seconds(45)) const {
    namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
    namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;
    const auto [channel, version] = channel_of(driver);
    if (!channel) return {{grpc::StatusCode::UNAVAILABLE, "DRA driver " + driver + " is not registered"}, {}};
    if (version == "v1.DRAPlugin")
      return ask<v1::DRAPlugin, v1::NodePrepareResourcesRequest, v1::NodePrepareResourcesResponse>(*channel, claims,
                                                                                                   timeout);
    return ask<v1beta1::DRAPlugin, v1beta1::NodePrepareResourcesRequest, v1beta1::NodePrepareResourcesResponse>(
        *channel, claims, timeout);
  }
  [[nodiscard]] Call unprepare(const std::string& driver, const std::vector<Claim>& claims,
                               std::chrono::milliseconds timeout = std::chrono::seconds(45)) const {
    namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
    namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;
    const auto [channel, version] = channel_of(driver);
    if (!channel) return {{grpc::StatusCode::UNAVAILABLE, "DRA driver " + driver + " is not registered"}, {}};
    if (version == "v1.DRAPlugin")
      return ask<v1::DRAPlugin, v1::NodeUnprepareResourcesRequest, v1::NodeUnprepareResourcesResponse>(*channel, claims,
                                                                                                       timeout);
    return ask<v1beta1::DRAPlugin, v1beta1::NodeUnprepareResourcesRequest, v1beta1::NodeUnprepareResourcesResponse>(
        *channel, claims, timeout);
  }

 private:
  struct Pods final : ::v1::PodResourcesLister::Service {
    grpc::Status List(grpc::ServerContext* /*context*/, const ::v1::ListPodResourcesRequest* /*request*/,
                      ::v1::ListPodResourcesResponse* response) override {
      const std::lock_guard lock(mutex);
      *response = pods;
      return grpc::Status::OK;
    }
    void set(::v1::ListPodResourcesResponse listed) {
      const std::lock_guard lock(mutex);
      pods = std::move(listed);
    }
    std::mutex mutex;
    ::v1::ListPodResourcesResponse pods;
  };
  // A plugin, and the connection that the kubelet keeps to it.
  struct Connection {
    Plugin plugin;
    std::string which;         // of the sockets that had its name
    std::uint64_t number = 0;  // the newest counts
    std::shared_ptr<grpc::Channel> channel;
    grpc::ClientContext watch;
    std::thread watching;

    ~Connection() {
      watch.TryCancel();
      if (watching.joinable()) watching.join();
    }
  };

  static std::shared_ptr<grpc::Channel> dial(const std::string& path) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
  }

  template <typename Service, typename Request, typename Response>
  static Call ask(const std::shared_ptr<grpc::Channel>& channel, const std::vector<Claim>& claims,
                  std::chrono::milliseconds timeout) {
    const auto stub = Service::NewStub(channel);
    Request request;
    for (const Claim& claim : claims) {
      auto* out = request.add_claims();
      out->set_namespace_(claim.claim_namespace);
      out->set_name(claim.name);
      out->set_uid(claim.uid);
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    Response response;
    Call call;
    if constexpr (requires { stub->NodePrepareResources(&context, request, &response); }) {
      call.status = stub->NodePrepareResources(&context, request, &response);
      for (const auto& [uid, answer] : response.claims()) call.claims[uid] = prepared_of(answer);
    } else {
      call.status = stub->NodeUnprepareResources(&context, request, &response);
      for (const auto& [uid, answer] : response.claims()) call.claims[uid] = {{}, answer.error()};
    }
    return call;
  }
  template <typename Answer>
  static Prepared prepared_of(const Answer& answer) {
    Prepared prepared{{}, answer.error()};
    for (const auto& device : answer.devices()) {
      prepared.devices.push_back({{device.request_names().begin(), device.request_names().end()},
                                  device.pool_name(),
                                  device.device_name(),
                                  {device.cdi_device_ids().begin(), device.cdi_device_ids().end()}});
    }
    return prepared;
  }

  [[nodiscard]] const Connection* newest(const std::string& driver) const {
    const Connection* found = nullptr;
    for (const auto& [socket, one] : known_) {
      if (!one->plugin.taken || one->plugin.driver != driver) continue;
      if (found == nullptr || one->number > found->number) found = one.get();
    }
    return found;
  }
  [[nodiscard]] std::pair<std::optional<std::shared_ptr<grpc::Channel>>, std::string> channel_of(
      const std::string& driver) const {
    const std::lock_guard lock(mutex_);
    const Connection* found = newest(driver);
    if (found == nullptr) return {std::nullopt, ""};
    return {found->channel, found->plugin.version};
  }

  // Name -> which socket of that name it is: one that was made anew is another plugin.
  using Sockets = std::map<std::string, std::string>;
  [[nodiscard]] Sockets sockets_there() const {
    Sockets sockets;
    for (const std::string& name : plugin::sockets_in(registry_)) {
      struct stat info {};
      if (name.front() == '.' || ::stat((registry_ + "/" + name).c_str(), &info) != 0) continue;
      sockets[name] = std::to_string(info.st_ino) + " " + std::to_string(info.st_ctim.tv_sec) + " " +
                      std::to_string(info.st_ctim.tv_nsec);
    }
    return sockets;
  }
  void look_for_plugins(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const Sockets sockets = sockets_there();
      drop_all_but(take_restart() ? Sockets() : sockets);
      for (const auto& [name, which] : sockets) {
        if (!knows(name) && !stop.stop_requested()) meet(name, which);
      }
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, options_.look_every);
    }
  }
  [[nodiscard]] bool take_restart() {
    const std::lock_guard lock(mutex_);
    return std::exchange(restarted_, false);
  }
  [[nodiscard]] bool knows(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return known_.contains(name);
  }
  void drop_all_but(const Sockets& sockets) {
    std::map<std::string, std::unique_ptr<Connection>> gone;  // ended without the lock, which their threads take
    {
      const std::lock_guard lock(mutex_);
      for (auto one = known_.begin(); one != known_.end();) {
        const auto next = std::next(one);
        const auto there = sockets.find(one->first);
        if (there == sockets.end() || there->second != one->second->which) gone.insert(known_.extract(one));
        one = next;
      }
    }
    if (!gone.empty()) changed_.notify_all();
  }

  // GetInfo within a second, then the answer; a plugin that refuses the connection is asked again later.
  void meet(const std::string& name, const std::string& which) {
    auto met = std::make_unique<Connection>();
    met->which = which;
    met->plugin.socket = name;
    const auto channel = dial(registry_ + "/" + name);
    const auto stub = pluginregistration::Registration::NewStub(channel);
    pluginregistration::PluginInfo info;
    {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
      if (!stub->GetInfo(&context, {}, &info).ok()) return;
    }
    met->plugin.driver = info.name();
    met->plugin.endpoint = info.endpoint();
    met->plugin.offered = {info.supported_versions().begin(), info.supported_versions().end()};
    pluginregistration::RegistrationStatus status;
    decide(info, met->plugin, status);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    pluginregistration::RegistrationStatusResponse none;
    if (met->plugin.taken) {
      connect(*met);
      const std::lock_guard lock(mutex_);
      known_[name] = std::move(met);  // only this thread takes it out again
      ++registrations_;
    }
    static_cast<void>(stub->NotifyRegistrationStatus(&context, status, &none));
    changed_.notify_all();
  }
  void decide(const pluginregistration::PluginInfo& info, Plugin& plugin,
              pluginregistration::RegistrationStatus& status) const {
    const std::lock_guard lock(mutex_);
    for (const std::string& version : plugin.offered) {
      const bool known = std::find(options_.knows.begin(), options_.knows.end(), version) != options_.knows.end();
      if (known && plugin.version.empty()) plugin.version = version;
    }
    std::string why = options_.refuses;
    if (info.type() != "DRAPlugin") why = "not a DRAPlugin: " + info.type();
    if (plugin.version.empty()) why = "none of the supported gRPC services is known";
    if (plugin.endpoint.empty() || plugin.endpoint.front() != '/') why = "endpoint is not an absolute path";
    plugin.taken = why.empty();
    status.set_plugin_registered(why.empty());
    status.set_error(why);
  }
  void connect(Connection& met) {
    met.channel = dial(met.plugin.endpoint);
    const auto is_offered = [&](const std::string& version) {
      return std::find(met.plugin.offered.begin(), met.plugin.offered.end(), version) != met.plugin.offered.end();
    };
    const auto& known = options_.knows_health;
    const auto health = std::find_if(known.begin(), known.end(), is_offered);
    if (options_.health && health != known.end()) {
      met.plugin.health_version = *health;
      met.watching = std::thread([this, &met, is_new = *health == "v1.DRAResourceHealth"] {
        if (is_new) return watch_health<v1::DRAResourceHealth, v1::NodeWatchResourcesResponse>(met);
        watch_health<v1alpha1::DRAResourceHealth, v1alpha1::NodeWatchResourcesResponse>(met);
      });
    }
    const std::lock_guard lock(mutex_);
    met.number = ++connections_;
  }
  template <typename Service, typename Message>
  void watch_health(Connection& met) {
    const auto stub = Service::NewStub(met.channel);
    const auto stream = stub->NodeWatchResources(&met.watch, {});
    Message message;
    while (stream->Read(&message)) {
      const std::lock_guard lock(mutex_);
      ++health_messages_;
      for (const auto& one : message.devices()) {
        health_[one.device().pool_name() + "/" + one.device().device_name()] = {
            static_cast<v1alpha1::HealthStatus>(one.health()), one.message()};
      }
      changed_.notify_all();
    }
    static_cast<void>(stream->Finish());
    const std::lock_guard lock(mutex_);
    health_.clear();  // of the driver, whichever instance's stream it was
    changed_.notify_all();
  }

  const std::string registry_;
  Options options_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<Connection>> known_;  // by socket name
  std::map<std::string, Health> health_;                      // "pool/device"
  std::uint64_t connections_ = 0;
  int registrations_ = 0;
  int health_messages_ = 0;
  bool restarted_ = false;
  Pods pods_;
  std::unique_ptr<grpc::Server> pod_resources_;
  std::jthread looking_;  // last: uses everything above
};

}  // namespace neuron::fakes
