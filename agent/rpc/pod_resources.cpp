#include "agent/rpc/pod_resources.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include "agent/base/parse.h"
#include "agent/rpc/status_map.h"
#include "podresources/v1/api.pb.h"

namespace neuron::rpc {
namespace {

constexpr int kMaxAnswerBytes = 16 << 20;
constexpr std::size_t kMaxNameBytes = 512;

// With bytes instead of messages: what the kubelet sent that is no message would be an empty one and no error
// (gRPC 1.51, callback API), and nobody would seem to hold anything.
struct BytesCall final : KeptCall {
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
};

// A call on a connection of its own, kept until it is done. `done` is given a Result<Response>.
template <typename Response, typename Done>
void start_call(CallKeeper& calls, const std::string& socket, const std::string& method,
                std::chrono::milliseconds deadline, Done done) {
  auto owned = std::make_unique<BytesCall>();
  BytesCall& call = *owned;
  call.channel = fresh_channel(socket, kMaxAnswerBytes);
  call.stub = std::make_unique<grpc::GenericStub>(call.channel);
  const grpc::Slice nothing;  // both requests are empty messages
  call.request = grpc::ByteBuffer(&nothing, 1);
  call.context.set_deadline(std::chrono::system_clock::now() + deadline);
  calls.keep(std::move(owned));
  const auto answer = [&calls, &call, method, done = std::move(done)](const grpc::Status& status) {
    Response response;
    if (!status.ok()) {
      done(fail(to_error(status, "PodResources " + method)));
    } else if (!call.response.Valid() ||
               !grpc::SerializationTraits<Response>::Deserialize(&call.response, &response).ok()) {
      done(fail(ErrorCode::data_corrupt, "PodResources " + method + ": the answer is no message of this protocol"));
    } else {
      done(std::move(response));
    }
    calls.finished(&call);
  };
  call.stub->UnaryCall(&call.context, "/v1.PodResourcesLister/" + method, grpc::StubOptions(), &call.request,
                       &call.response, answer);
}

std::string name_of(const std::string& foreign) {
  return printable(foreign, kMaxNameBytes);
}

std::vector<model::Allocation> convert(const v1::ListPodResourcesResponse& response) {
  std::vector<model::Allocation> all;
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
  start_call<v1::ListPodResourcesResponse>(calls_, socket_, "List", deadline,
                                           [done = std::move(done)](Result<v1::ListPodResourcesResponse> response) {
                                             done(response.map([](const auto& list) { return convert(list); }));
                                           });
}

void PodResourcesClient::allocatable(std::chrono::milliseconds deadline, AllocatableDone done) {
  start_call<v1::AllocatableResourcesResponse>(
      calls_, socket_, "GetAllocatableResources", deadline,
      [done = std::move(done)](Result<v1::AllocatableResourcesResponse> response) {
        done(response.map([](const auto& list) { return convert(list); }));
      });
}

}  // namespace neuron::rpc
