#pragma once

#include "dra/v1/api.grpc.pb.h"
#include "dra/v1beta1/api.grpc.pb.h"
#include "plugin/dra/claim/claim_port.h"
#include "plugin/dra/serve/blocking_calls.h"

namespace neuron::plugin::dra {

// The two versions of one protocol, whose messages have the same names.
struct ProtocolV1 {
  using Service = k8s::io::kubelet::pkg::apis::dra::v1::DRAPlugin;
  using PrepareRequest = k8s::io::kubelet::pkg::apis::dra::v1::NodePrepareResourcesRequest;
  using PrepareResponse = k8s::io::kubelet::pkg::apis::dra::v1::NodePrepareResourcesResponse;
  using UnprepareRequest = k8s::io::kubelet::pkg::apis::dra::v1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = k8s::io::kubelet::pkg::apis::dra::v1::NodeUnprepareResourcesResponse;
};
struct ProtocolV1beta1 {
  using Service = k8s::io::kubelet::pkg::apis::dra::v1beta1::DRAPlugin;
  using PrepareRequest = k8s::io::kubelet::pkg::apis::dra::v1beta1::NodePrepareResourcesRequest;
  using PrepareResponse = k8s::io::kubelet::pkg::apis::dra::v1beta1::NodePrepareResourcesResponse;
  using UnprepareRequest = k8s::io::kubelet::pkg::apis::dra::v1beta1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = k8s::io::kubelet::pkg::apis::dra::v1beta1::NodeUnprepareResourcesResponse;
};

// The kubelet's DRAPlugin service over a ClaimPort: converts, asks, converts back. Its handlers return at once; what
// they ask is asked by `calls`.
template <typename Protocol>
class DraService final : public Protocol::Service::CallbackService {
 public:
  // Both must outlive the service's server; `claims` also every job of `calls`.
  DraService(ClaimPort& claims, BlockingCalls& calls) : claims_(claims), calls_(calls) {}

  grpc::ServerUnaryReactor* NodePrepareResources(grpc::CallbackServerContext* context,
                                                 const typename Protocol::PrepareRequest* request,
                                                 typename Protocol::PrepareResponse* response) override;
  grpc::ServerUnaryReactor* NodeUnprepareResources(grpc::CallbackServerContext* context,
                                                   const typename Protocol::UnprepareRequest* request,
                                                   typename Protocol::UnprepareResponse* response) override;

 private:
  ClaimPort& claims_;
  BlockingCalls& calls_;
};

extern template class DraService<ProtocolV1>;
extern template class DraService<ProtocolV1beta1>;

}  // namespace neuron::plugin::dra
