#include "plugin/kubelet_registration.h"

#include <grpcpp/grpcpp.h>

#include <memory>

#include "agent/rpc/status_map.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"

namespace neuron::plugin {
namespace {

struct Call {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1beta1::Registration::Stub> stub;
  grpc::ClientContext context;
  v1beta1::RegisterRequest request;
  v1beta1::Empty response;
};

}  // namespace

void register_with_kubelet(const std::string& kubelet_socket, Resource resource, const std::string& endpoint,
                           std::chrono::milliseconds deadline, std::function<void(std::optional<Error>)> done) {
  auto call = std::make_shared<Call>();
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // no backoff inherited from an earlier kubelet
  call->channel = grpc::CreateCustomChannel("unix:" + kubelet_socket, grpc::InsecureChannelCredentials(), arguments);
  call->stub = v1beta1::Registration::NewStub(call->channel);
  call->context.set_deadline(std::chrono::system_clock::now() + deadline);
  call->request.set_version("v1beta1");
  call->request.set_endpoint(endpoint);
  call->request.set_resource_name(std::string(resource_name(resource)));
  call->request.mutable_options()->set_get_preferred_allocation_available(true);
  call->request.mutable_options()->set_pre_start_required(silicon_of(resource).has_value());
  Call* raw = call.get();
  raw->stub->async()->Register(&raw->context, &raw->request, &raw->response,
                               [call = std::move(call), done = std::move(done), resource](const grpc::Status& status) {
                                 if (status.ok()) {
                                   done(std::nullopt);
                                 } else {
                                   done(rpc::to_error(status, "registering " + std::string(resource_name(resource))));
                                 }
                               });
}

}  // namespace neuron::plugin
