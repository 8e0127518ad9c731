#include "agent/rpc/pod_resources.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "agent/base/parse.h"
#include "agent/rpc/status_map.h"
#include "podresources/v1/api.grpc.pb.h"

namespace neuron::rpc {
namespace {

constexpr int kMaxAnswerBytes = 16 << 20;
constexpr std::size_t kMaxNameBytes = 512;

struct ListCall final : KeptCall {
  std::unique_ptr<v1::PodResourcesLister::Stub> stub;
  v1::ListPodResourcesRequest request;
  v1::ListPodResourcesResponse response;
};

struct AllocatableCall final : KeptCall {
  std::unique_ptr<v1::PodResourcesLister::Stub> stub;
  v1::AllocatableResourcesRequest request;
  v1::AllocatableResourcesResponse response;
};

// A call on a connection of its own, kept until it is done.
template <typename Call>
Call& open_call(CallKeeper& calls, const std::string& socket, std::chrono::milliseconds deadline) {
  auto owned = std::make_unique<Call>();
  Call& call = *owned;
  call.channel = fresh_channel(socket, kMaxAnswerBytes);
  call.stub = v1::PodResourcesLister::NewStub(call.channel);
  call.context.set_deadline(std::chrono::system_clock::now() + deadline);
  calls.keep(std::move(owned));
  return call;
}

std::string name_of(const std::string& foreign) {
  return printable(foreign, kMaxNameBytes);
}

std::vector<PodDevices> convert(const v1::ListPodResourcesResponse& response) {
  std::vector<PodDevices> all;
  for (const auto& pod : response.pod_resources()) {
    const std::size_t before = all.size();
    for (const auto& container : pod.containers()) {
      std::map<std::string, std::set<std::string>> by_resource;  // the kubelet repeats a device per NUMA node
      for (const auto& devices : container.devices()) {
        auto& ids = by_resource[name_of(devices.resource_name())];
        for (const auto& id : devices.device_ids()) ids.insert(name_of(id));
      }
      for (const auto& [resource, ids] : by_resource) {
        all.push_back({name_of(pod.namespace_()), name_of(pod.name()), name_of(container.name()), resource,
                       std::vector<std::string>(ids.begin(), ids.end())});
      }
    }
    if (all.size() == before) all.push_back({name_of(pod.namespace_()), name_of(pod.name()), "", "", {}});
  }
  return all;
}

Allocatable convert(const v1::AllocatableResourcesResponse& response) {
  Allocatable all;
  for (const auto& devices : response.devices()) {
    auto& ids = all[name_of(devices.resource_name())];
    for (const auto& id : devices.device_ids()) ids.insert(name_of(id));
  }
  return all;
}

}  // namespace

PodResourcesClient::PodResourcesClient(std::string socket) : socket_(std::move(socket)) {}

void PodResourcesClient::list(std::chrono::milliseconds deadline, Done done) {
  auto& call = open_call<ListCall>(calls_, socket_, deadline);
  call.stub->async()->List(&call.context, &call.request, &call.response,
                           [this, &call, done = std::move(done)](const grpc::Status& status) {
                             if (status.ok()) {
                               done(convert(call.response));
                             } else {
                               done(fail(to_error(status, "PodResources List")));
                             }
                             calls_.finished(&call);
                           });
}

void PodResourcesClient::allocatable(std::chrono::milliseconds deadline, AllocatableDone done) {
  auto& call = open_call<AllocatableCall>(calls_, socket_, deadline);
  call.stub->async()->GetAllocatableResources(&call.context, &call.request, &call.response,
                                              [this, &call, done = std::move(done)](const grpc::Status& status) {
                                                if (status.ok()) {
                                                  done(convert(call.response));
                                                } else {
                                                  done(fail(to_error(status, "PodResources GetAllocatableResources")));
                                                }
                                                calls_.finished(&call);
                                              });
}

}  // namespace neuron::rpc
