#include "plugin/device/plugin_server.h"

#include <spdlog/spdlog.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>

#include "agent/rpc/calls.h"

namespace neuron::plugin {
namespace {

// gRPC methods, as they are counted.
constexpr std::string_view kPreferred = "GetPreferredAllocation";
constexpr std::string_view kAllocate = "Allocate";
constexpr std::string_view kPreStart = "PreStartContainer";

constexpr int kMaxIds = 4096;  // far above any node; a larger request is foreign nonsense

SteadyTime clock_now() {
  return std::chrono::steady_clock::now();
}

template <typename Field>
std::vector<std::string> strings(const Field& field) {
  return {field.begin(), field.end()};
}

v1beta1::ListAndWatchResponse to_response(const UnitList& units) {
  v1beta1::ListAndWatchResponse response;
  for (const UnitState& unit : units) {
    v1beta1::Device* device = response.add_devices();
    device->set_id(unit.id);
    device->set_health(unit.healthy ? "Healthy" : "Unhealthy");
    for (const int node : unit.numa_nodes) device->mutable_topology()->add_nodes()->set_id(node);
  }
  return response;
}

void fill(v1beta1::ContainerAllocateResponse& response, const grant::Grant& answer) {
  for (const auto& [name, value] : answer.envs) (*response.mutable_envs())[name] = value;
  for (const auto& node : answer.device_nodes) {
    v1beta1::DeviceSpec* spec = response.add_devices();
    spec->set_host_path(node.host_path);
    spec->set_container_path(node.container_path);
    spec->set_permissions("rw");
  }
  for (const std::string& name : answer.cdi_names) response.add_cdi_devices()->set_name(name);
}

}  // namespace

CallFigures::Names DevicePluginService::counted_names(const core::OfferPolicy& offer) {
  CallFigures::Names names{{kPreferred, kAllocate, kPreStart}, {}, {}};
  for (const refusals::Kind kind : refusals::kAllKinds) names.refusals.push_back(refusals::to_string(kind));
  for (const model::Resource resource : model::kAllResources) {
    if (offer.serves(resource)) names.resources.emplace_back(model::resource_name(resource));
  }
  return names;
}

DevicePluginService::DevicePluginService(model::Resource resource, const Parts& parts, WatchHub& hub)
    : resource_(resource), parts_(parts), hub_(hub) {}

void DevicePluginService::close() {
  {
    const MutexLock lock(closing_mutex_);
    closing_ = true;
  }
  parts_.pre_start.cancel(resource_);
  parts_.admissions.release(resource_);
  if (parts_.placements != nullptr) parts_.placements->release(resource_);
}

bool DevicePluginService::closing() {
  const MutexLock lock(closing_mutex_);
  return closing_;
}

grpc::ServerUnaryReactor* DevicePluginService::GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                                      const v1beta1::Empty* /*request*/,
                                                                      v1beta1::DevicePluginOptions* response) {
  response->set_get_preferred_allocation_available(true);
  response->set_pre_start_required(model::has_cores(resource_));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* DevicePluginService::ListAndWatch(
    grpc::CallbackServerContext* /*context*/, const v1beta1::Empty* /*request*/) {
  using Stream = rpc::ListStream<v1beta1::ListAndWatchResponse, UnitList>;
  const auto stream = Stream::open(
      hub_, to_response, [&admissions = parts_.admissions] { admissions.list_published(); },
      [resource = resource_, &events = parts_.events](Stream::End end) {
        if (end == Stream::End::by_peer) events.post(StreamEnded{resource});
      });
  parts_.admissions.open_stream(resource_, [stream, &events = parts_.events] {
    Stream::join(stream);
    events.post(StreamOpened{});
  });
  if (closing()) parts_.admissions.release(resource_);
  return stream.get();
}

std::vector<std::string> DevicePluginService::preferred(const v1beta1::ContainerPreferredAllocationRequest& container) {
  const auto available = strings(container.available_deviceids());
  const auto must_include = strings(container.must_include_deviceids());
  const int size = container.allocation_size();
  if (parts_.placements != nullptr && model::has_cores(resource_)) {
    if (const auto choice = parts_.placements->choose(resource_, size, parts_.allocations.all_holdings())) {
      auto answer = parts_.allocations.prefer_placed(resource_, available, must_include, size, choice->ids);
      parts_.placements->answered(*choice, resource_, answer.obstacle);
      return std::move(answer.ids);
    }
  }
  return parts_.allocations.prefer(resource_, available, must_include, size);
}

void DevicePluginService::prefer(const v1beta1::PreferredAllocationRequest& request,
                                 v1beta1::PreferredAllocationResponse& response) {
  parts_.admissions.called();
  for (const auto& container : request.container_requests()) {
    auto* answer = response.add_container_responses();
    for (std::string& id : preferred(container)) answer->add_deviceids(std::move(id));
  }
}

grpc::ServerUnaryReactor* DevicePluginService::GetPreferredAllocation(
    grpc::CallbackServerContext* context, const v1beta1::PreferredAllocationRequest* request,
    v1beta1::PreferredAllocationResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto answer_now = [this, reactor, request, response, asked_at = clock_now()] {
    prefer(*request, *response);
    count(kPreferred, asked_at, true);
    reactor->Finish(grpc::Status::OK);
  };
  if (parts_.placements == nullptr || !model::has_cores(resource_) || request->container_requests_size() != 1) {
    answer_now();
    return reactor;
  }
  parts_.admissions.called();
  parts_.allocations.call_began();
  parts_.placements->when_known(resource_, request->container_requests(0).allocation_size(), answer_now);
  if (closing()) parts_.placements->release(resource_);
  return reactor;
}

std::optional<SteadyTime> DevicePluginService::needs_checkpoint(const v1beta1::AllocateRequest& request, Wait wait) {
  if (closing()) return std::nullopt;
  for (const auto& container : request.container_requests()) {
    if (container.devices_ids_size() > kMaxIds) continue;
    const auto ids = strings(container.devices_ids());
    std::optional<SteadyTime> earliest;
    if (wait == Wait::second) {
      earliest = parts_.allocations.needs_second_checkpoint(resource_, ids);
    } else if (parts_.allocations.needs_fresh_checkpoint(resource_, ids)) {
      earliest = clock_now();
    }
    if (earliest) return earliest;
  }
  return std::nullopt;
}

void DevicePluginService::wait_for_checkpoint(SteadyTime earliest, AdmissionGate::Continuation then) {
  parts_.admissions.wait_for_checkpoint(resource_, earliest, std::move(then));
  if (closing()) parts_.admissions.release(resource_);
}

grpc::Status DevicePluginService::refused(const refusals::Refusal& refusal) const {
  spdlog::warn("allocation refused resource={} reason={}: {}", model::resource_name(resource_),
               refusals::to_string(refusal.kind), refusal.message);
  if (parts_.figures != nullptr) parts_.figures->refused(refusals::to_string(refusal.kind));
  return rpc::to_status(refusal);
}

grpc::Status DevicePluginService::allocate(const v1beta1::AllocateRequest& request,
                                           v1beta1::AllocateResponse& response) {
  for (const auto& container : request.container_requests()) {
    if (container.devices_ids_size() > kMaxIds) return refused(refusals::too_many_ids(kMaxIds));
    const auto ids = strings(container.devices_ids());
    const auto answer = parts_.allocations.allocate(resource_, ids);
    if (!answer) return refused(answer.error());
    if (parts_.placements != nullptr) parts_.placements->given(resource_, ids, parts_.allocations.all_holdings());
    fill(*response.add_container_responses(), *answer);
    if (parts_.figures != nullptr) parts_.figures->gave(model::resource_name(resource_));
  }
  return grpc::Status::OK;
}

void DevicePluginService::answer(const v1beta1::AllocateRequest& request, v1beta1::AllocateResponse& response,
                                 grpc::ServerUnaryReactor* reactor, SteadyTime asked_at) {
  const grpc::Status status = allocate(request, response);
  parts_.admissions.answered(status.ok() ? Admissions::Outcome::given : Admissions::Outcome::refused);
  count(kAllocate, asked_at, status.ok());  // before the answer: its receiver may read the figures
  reactor->Finish(status);
}

void DevicePluginService::count(std::string_view method, SteadyTime asked_at, bool answered) const {
  if (parts_.figures == nullptr) return;
  parts_.figures->called(method, clock_now() - asked_at,
                         answered ? CallFigures::Outcome::answered : CallFigures::Outcome::failed);
}

grpc::ServerUnaryReactor* DevicePluginService::Allocate(grpc::CallbackServerContext* context,
                                                        const v1beta1::AllocateRequest* request,
                                                        v1beta1::AllocateResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto answer_now = [this, reactor, request, response, asked_at = clock_now()] {
    answer(*request, *response, reactor, asked_at);
  };
  parts_.allocations.call_began();
  parts_.admissions.answer(resource_, [this, request, answer_now] {
    const auto now = needs_checkpoint(*request, Wait::first);
    if (!now) return answer_now();
    wait_for_checkpoint(*now, [this, request, answer_now] {
      const auto later = needs_checkpoint(*request, Wait::second);
      if (!later) return answer_now();
      wait_for_checkpoint(*later, answer_now);
    });
  });
  if (closing()) parts_.admissions.release(resource_);
  return reactor;
}

grpc::ServerUnaryReactor* DevicePluginService::PreStartContainer(grpc::CallbackServerContext* context,
                                                                 const v1beta1::PreStartContainerRequest* request,
                                                                 v1beta1::PreStartContainerResponse* /*response*/) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const MutexLock lock(closing_mutex_);
  if (closing_) {
    reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the plugin is restarting on another socket; try again"});
    return reactor;
  }
  parts_.pre_start.wait(resource_, strings(request->devices_ids()),
                        [this, reactor, asked_at = clock_now()](std::optional<Error> error) {
                          count(kPreStart, asked_at, !error);
                          reactor->Finish(error ? rpc::to_status(*error) : grpc::Status::OK);
                        });
  return reactor;
}

PluginServer::PluginServer(model::Resource resource, std::string endpoint, const DevicePluginService::Parts& parts)
    : resource_(resource), endpoint_(std::move(endpoint)), service_(resource, parts, hub_) {}

Result<std::unique_ptr<PluginServer>> PluginServer::start(model::Resource resource, const std::string& directory,
                                                          const std::string& endpoint,
                                                          const DevicePluginService::Parts& parts) {
  const std::string path = directory + "/" + endpoint;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return fail(ErrorCode::invalid_argument, path + ": too long for a unix socket (at most " +
                                                 std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes)");
  }
  std::unique_ptr<PluginServer> plugin(new PluginServer(resource, endpoint, parts));
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&plugin->service_);
  plugin->server_ = builder.BuildAndStart();
  if (!plugin->server_) {
    // Without the socket's name, which differs each time: equal lines are logged once.
    return fail(
        ErrorCode::unavailable,
        directory +
            ": cannot create a socket there; check that the directory is writable and its file system has free inodes");
  }
  return plugin;
}

void PluginServer::close() {
  hub_.close();
  service_.close();
}

PluginServer::~PluginServer() {
  constexpr std::chrono::milliseconds kStopTimeout{400};  // all own calls have ended by then; peers may be stuck
  close();
  if (server_) {
    server_->Shutdown(std::chrono::system_clock::now() + kStopTimeout);
    server_->Wait();
  }
}

}  // namespace neuron::plugin
