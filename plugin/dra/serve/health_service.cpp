#include "plugin/dra/serve/health_service.h"

#include "plugin/kubelet/list_stream.h"

namespace neuron::plugin::dra {
namespace {

v1alpha1::HealthStatus status_of(DeviceHealth::State state) {
  switch (state) {
    case DeviceHealth::State::healthy:
      return v1alpha1::HEALTHY;
    case DeviceHealth::State::unhealthy:
      return v1alpha1::UNHEALTHY;
    case DeviceHealth::State::unknown:
      break;
  }
  return v1alpha1::UNKNOWN;
}

v1alpha1::NodeWatchResourcesResponse to_response(const HealthList& list) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  v1alpha1::NodeWatchResourcesResponse response;
  for (const DeviceHealth& one : list.devices) {
    v1alpha1::DeviceHealth* device = response.add_devices();
    device->mutable_device()->set_pool_name(list.pool);
    device->mutable_device()->set_device_name(one.device);
    device->set_health(status_of(one.state));
    device->set_last_updated_time(std::chrono::duration_cast<std::chrono::seconds>(now).count());
    device->set_message(one.message);
  }
  return response;
}

}  // namespace

grpc::ServerWriteReactor<v1alpha1::NodeWatchResourcesResponse>* HealthService::NodeWatchResources(
    grpc::CallbackServerContext* /*context*/, const v1alpha1::NodeWatchResourcesRequest* /*request*/) {
  using Stream = ListStream<v1alpha1::NodeWatchResourcesResponse, HealthList>;
  const auto stream = Stream::open(
      hub_, to_response, [] {}, [](Stream::End /*end*/) {});
  Stream::join(stream);
  return stream.get();
}

}  // namespace neuron::plugin::dra
