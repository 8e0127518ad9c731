#include "plugin/kubelet/kubelet_registration.h"

#include <memory>

#include "agent/rpc/calls.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"

namespace neuron::plugin {
namespace {

constexpr int kMaxAnswerBytes = 64 << 10;  // the answer is empty

struct RegisterCall final : rpc::KeptCall {
  std::unique_ptr<v1beta1::Registration::Stub> stub;
  v1beta1::RegisterRequest request;
  v1beta1::Empty response;
};

}  // namespace

void KubeletRegistration::start(model::Resource resource, const std::string& endpoint,
                                std::chrono::milliseconds deadline, Done done) {
  auto owned = std::make_unique<RegisterCall>();
  RegisterCall* call = owned.get();
  call->channel = rpc::fresh_channel(socket_, kMaxAnswerBytes);
  call->stub = v1beta1::Registration::NewStub(call->channel);
  call->context.set_deadline(std::chrono::system_clock::now() + deadline);
  call->request.set_version("v1beta1");
  call->request.set_endpoint(endpoint);
  call->request.set_resource_name(std::string(model::resource_name(resource)));
  call->request.mutable_options()->set_get_preferred_allocation_available(true);
  call->request.mutable_options()->set_pre_start_required(model::has_cores(resource));
  calls_.keep(std::move(owned));
  call->stub->async()->Register(
      &call->context, &call->request, &call->response,
      [this, call, done = std::move(done), resource](const grpc::Status& status) {
        if (status.ok()) {
          done(std::nullopt);
        } else {
          done(rpc::to_error(status, "registering " + std::string(model::resource_name(resource))));
        }
        calls_.finished(call);
      });
}

}  // namespace neuron::plugin
