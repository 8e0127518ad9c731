#include "plugin/device/device_plugin_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "agent/rpc/status_map.h"
#include "plugin/device/watch_stream.h"

namespace neuron::plugin {
namespace {

constexpr int kMaxIds = 4096;  // far above any node; a larger request is foreign nonsense

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

void fill(v1beta1::ContainerAllocateResponse& response, const ContainerAnswer& answer) {
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

DevicePluginService::DevicePluginService(model::Resource resource, AllocationDesk& desk, WatchHub& hub,
                                         const Hooks& hooks)
    : resource_(resource), desk_(desk), hub_(hub), hooks_(hooks) {}

void DevicePluginService::close() {
  {
    const MutexLock lock(closing_mutex_);
    closing_ = true;
  }
  hooks_.cancel_pre_start(resource_);
  hooks_.release_allocate(resource_);
}

grpc::ServerUnaryReactor* DevicePluginService::GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                                      const v1beta1::Empty* /*request*/,
                                                                      v1beta1::DevicePluginOptions* response) {
  response->set_get_preferred_allocation_available(true);
  response->set_pre_start_required(model::is_silicon(resource_));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* DevicePluginService::ListAndWatch(
    grpc::CallbackServerContext* /*context*/, const v1beta1::Empty* /*request*/) {
  using Stream = WatchStream<v1beta1::ListAndWatchResponse>;
  return Stream::start(
      hub_, to_response, hooks_.on_list_sent, [resource = resource_, &hooks = hooks_](Stream::End end) {
        hooks.on_stream_end(resource, end == Stream::End::by_us ? StreamEnd::by_us : StreamEnd::by_peer);
      });
}

grpc::ServerUnaryReactor* DevicePluginService::GetPreferredAllocation(
    grpc::CallbackServerContext* context, const v1beta1::PreferredAllocationRequest* request,
    v1beta1::PreferredAllocationResponse* response) {
  for (const auto& container : request->container_requests()) {
    auto* answer = response->add_container_responses();
    for (std::string& id : desk_.prefer(resource_, strings(container.available_deviceids()),
                                        strings(container.must_include_deviceids()), container.allocation_size())) {
      answer->add_deviceids(std::move(id));
    }
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

bool DevicePluginService::in_doubt(const v1beta1::AllocateRequest& request) {
  const auto& containers = request.container_requests();
  return std::any_of(containers.begin(), containers.end(), [this](const auto& container) {
    return container.devices_ids_size() <= kMaxIds && desk_.doubtful(resource_, strings(container.devices_ids()));
  });
}

grpc::Status DevicePluginService::allocate(const v1beta1::AllocateRequest& request,
                                           v1beta1::AllocateResponse& response) {
  for (const auto& container : request.container_requests()) {
    if (container.devices_ids_size() > kMaxIds) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "more than " + std::to_string(kMaxIds) + " device ids"};
    }
    const Result<ContainerAnswer> answer = desk_.allocate(resource_, strings(container.devices_ids()));
    if (!answer) {
      spdlog::warn("allocate resource={} refused=\"{}\"", model::resource_name(resource_), answer.error().message);
      return rpc::to_status(answer.error());
    }
    fill(*response.add_container_responses(), *answer);
    hooks_.on_allocate(resource_);
  }
  return grpc::Status::OK;
}

grpc::ServerUnaryReactor* DevicePluginService::Allocate(grpc::CallbackServerContext* context,
                                                        const v1beta1::AllocateRequest* request,
                                                        v1beta1::AllocateResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto answer = [this, reactor, request, response] { reactor->Finish(allocate(*request, *response)); };
  const auto answer_surely = [this, request, answer] {
    if (in_doubt(*request)) {
      const MutexLock lock(closing_mutex_);
      if (!closing_) return hooks_.hold_for_checkpoint(resource_, answer);
    }
    answer();
  };
  bool held = false;
  {
    const MutexLock lock(closing_mutex_);
    held = !closing_ && hooks_.hold_allocate(resource_, answer_surely);
  }
  if (!held) answer_surely();
  return reactor;
}

grpc::ServerUnaryReactor* DevicePluginService::PreStartContainer(grpc::CallbackServerContext* context,
                                                                 const v1beta1::PreStartContainerRequest* request,
                                                                 v1beta1::PreStartContainerResponse* /*response*/) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const MutexLock lock(closing_mutex_);
  if (closing_) {
    reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the plugin is moving to another socket; try again"});
    return reactor;
  }
  hooks_.pre_start(resource_, strings(request->devices_ids()), [reactor](std::optional<Error> error) {
    reactor->Finish(error ? rpc::to_status(*error) : grpc::Status::OK);
  });
  return reactor;
}

}  // namespace neuron::plugin
