#include "test/bench/empty_call.h"

#include <stdlib.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace neuron::bench {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

class EmptyCall::Service final : public v1beta1::DevicePlugin::CallbackService {
  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext* context,
                                              const v1beta1::PreStartContainerRequest* /*request*/,
                                              v1beta1::PreStartContainerResponse* /*response*/) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* GetPreferredAllocation(grpc::CallbackServerContext* context,
                                                   const v1beta1::PreferredAllocationRequest* request,
                                                   v1beta1::PreferredAllocationResponse* response) override {
    for (const auto& container : request->container_requests()) {
      auto* answer = response->add_container_responses();
      for (int i = 0; i < container.allocation_size(); ++i) answer->add_deviceids(container.available_deviceids(i));
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

std::unique_ptr<v1beta1::DevicePlugin::Stub> connect(const std::string& socket) {
  return v1beta1::DevicePlugin::NewStub(grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
}

EmptyCall::EmptyCall() : directory_("/tmp/rpc-bench-XXXXXX"), service_(std::make_unique<Service>()) {
  if (mkdtemp(directory_.data()) == nullptr) std::abort();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + directory_ + "/empty.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (!server_) std::abort();
  stub_ = connect(directory_ + "/empty.sock");
}

EmptyCall::~EmptyCall() {
  server_->Shutdown();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

double EmptyCall::microseconds() {
  grpc::ClientContext context;
  v1beta1::PreStartContainerResponse response;
  const auto start = Clock::now();
  if (!stub_->PreStartContainer(&context, {}, &response).ok()) std::abort();
  return since(start);
}

double EmptyCall::microseconds(const v1beta1::PreferredAllocationRequest& request) {
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse response;
  const auto start = Clock::now();
  if (!stub_->GetPreferredAllocation(&context, request, &response).ok()) std::abort();
  return since(start);
}

}  // namespace neuron::bench
