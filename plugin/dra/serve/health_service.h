#pragma once

#include <chrono>
#include <functional>

#include "dra_health/v1alpha1/api.grpc.pb.h"
#include "plugin/dra/serve/health_list.h"

namespace neuron::plugin::dra {

// The kubelet's DRAResourceHealth service: every open stream is told the hub's newest list, whole. When it is told
// again, though nothing has changed, is up to whoever calls HealthHub::repeat().
class HealthService final : public v1alpha1::DRAResourceHealth::CallbackService {
 public:
  // `hub` must outlive the service's server.
  explicit HealthService(HealthHub& hub) : hub_(hub) {}

  grpc::ServerWriteReactor<v1alpha1::NodeWatchResourcesResponse>* NodeWatchResources(
      grpc::CallbackServerContext* context, const v1alpha1::NodeWatchResourcesRequest* request) override;

 private:
  HealthHub& hub_;
};

}  // namespace neuron::plugin::dra
