#include "plugin/dra/serve/dra_service.h"

#include <utility>

#include "agent/rpc/calls.h"
#include "plugin/dra/claim/claim_calls.h"

namespace neuron::plugin::dra {
namespace {

template <typename Request>
std::vector<ClaimRef> claims_of(const Request& request) {
  std::vector<ClaimRef> claims;
  claims.reserve(static_cast<std::size_t>(request.claims_size()));
  for (const auto& claim : request.claims()) claims.push_back({claim.namespace_(), claim.name(), claim.uid()});
  return claims;
}

template <typename Message>
void fill(Message& message, PrepareAnswer answer) {
  message.set_error(std::move(answer.error));
  for (PreparedDevice& device : answer.devices) {
    auto* out = message.add_devices();
    for (std::string& request : device.requests) out->add_request_names(std::move(request));
    out->set_pool_name(std::move(device.pool));
    out->set_device_name(std::move(device.device));
    for (std::string& id : device.cdi_ids) out->add_cdi_device_ids(std::move(id));
    if (device.share_id) out->set_share_id(*std::move(device.share_id));
  }
}

template <typename Message>
void fill(Message& message, std::string error) {
  message.set_error(std::move(error));
}

// gRPC's response is written on commit only: the job may outlive it.
template <typename Response, typename Answers>
BlockingCalls::Commit commit(Response* response, Answers answers) {
  return [response, given = std::make_shared<Answers>(std::move(answers))] {
    if (!*given) return rpc::to_status(given->error());
    for (auto& [uid, answer] : **given) fill((*response->mutable_claims())[uid], std::move(answer));
    return grpc::Status::OK;
  };
}

}  // namespace

template <typename Protocol>
grpc::ServerUnaryReactor* DraService<Protocol>::NodePrepareResources(grpc::CallbackServerContext* /*context*/,
                                                                     const typename Protocol::PrepareRequest* request,
                                                                     typename Protocol::PrepareResponse* response) {
  return calls_.start([&claims = claims_, asked = claims_of(*request), response](const std::stop_token& stop) {
    return commit(response, prepare_all(claims, asked, stop));
  });
}

template <typename Protocol>
grpc::ServerUnaryReactor* DraService<Protocol>::NodeUnprepareResources(
    grpc::CallbackServerContext* /*context*/, const typename Protocol::UnprepareRequest* request,
    typename Protocol::UnprepareResponse* response) {
  return calls_.start([&claims = claims_, asked = claims_of(*request), response](const std::stop_token& /*stop*/) {
    return commit(response, unprepare_all(claims, asked));
  });
}

template class DraService<ProtocolV1>;
template class DraService<ProtocolV1beta1>;

}  // namespace neuron::plugin::dra
