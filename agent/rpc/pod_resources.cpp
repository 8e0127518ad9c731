#include "agent/rpc/pod_resources.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <future>
#include <memory>
#include <utility>

#include "agent/rpc/pod_answers.h"
#include "agent/rpc/status_map.h"

namespace neuron::rpc {
namespace {

constexpr int kMaxAnswerBytes = 16 << 20;

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

// The answer that `ask` gives to its callback. The callback shares the promise: it may still be in set_value when the
// waiter is gone.
template <typename Answer, typename Ask>
Result<Answer> wait_for(const Ask& ask) {
  const auto promise = std::make_shared<std::promise<Result<Answer>>>();
  auto answer = promise->get_future();
  ask([promise](Result<Answer> given) { promise->set_value(std::move(given)); });
  return answer.get();
}

}  // namespace

PodResourcesClient::PodResourcesClient(std::string socket) : socket_(std::move(socket)) {}

void PodResourcesClient::list(std::chrono::milliseconds deadline, Done done) {
  start_call<v1::ListPodResourcesResponse>(calls_, socket_, "List", deadline,
                                           [done = std::move(done)](Result<v1::ListPodResourcesResponse> response) {
                                             done(response.map([](const auto& list) { return devices_in(list); }));
                                           });
}

void PodResourcesClient::allocatable(std::chrono::milliseconds deadline, AllocatableDone done) {
  start_call<v1::AllocatableResourcesResponse>(
      calls_, socket_, "GetAllocatableResources", deadline,
      [done = std::move(done)](Result<v1::AllocatableResourcesResponse> response) {
        done(response.map([](const auto& list) { return allocatable_in(list); }));
      });
}

Result<std::vector<model::Allocation>> PodResourcesClient::list(std::chrono::milliseconds deadline) {
  return wait_for<std::vector<model::Allocation>>([&](Done done) { list(deadline, std::move(done)); });
}

Result<Allocatable> PodResourcesClient::allocatable(std::chrono::milliseconds deadline) {
  return wait_for<Allocatable>([&](AllocatableDone done) { allocatable(deadline, std::move(done)); });
}

}  // namespace neuron::rpc
