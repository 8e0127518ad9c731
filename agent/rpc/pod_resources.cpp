#include "agent/rpc/pod_resources.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/hardware.h"

namespace neuron::rpc {
namespace {

std::string name_of(const std::string& foreign) {
  return printable(foreign, kMaxNameBytes);
}

using Ids = std::set<std::string>;

// The container's names, without units.
model::Allocation holding_of(const v1::PodResources& pod, const v1::ContainerResources& container) {
  return {name_of(pod.namespace_()), name_of(pod.name()), name_of(container.name()), "", {}};
}

void add_resources(const v1::PodResources& pod, const v1::ContainerResources& container,
                   std::vector<model::Allocation>& all) {
  std::map<std::string, Ids> by_resource;  // the kubelet repeats a device per NUMA node
  for (const auto& devices : container.devices()) {
    Ids& ids = by_resource[name_of(devices.resource_name())];
    for (const auto& id : devices.device_ids()) ids.insert(name_of(id));
  }
  for (const auto& [resource, ids] : by_resource) {
    model::Allocation one = holding_of(pod, container);
    one.resource_name = resource;
    one.ids.assign(ids.begin(), ids.end());
    all.push_back(std::move(one));
  }
}

// A container's devices of one claim and driver.
struct ClaimPart {
  Ids held;
  Ids of_admin;        // some may be held by another request of the claim
  std::string cdi_id;  // the first
};

// A device's own CDI ids are the last of its entry. Without one it counts as held, all of it.
core::ClaimedDevice claimed(const v1::ClaimResource& device) {
  for (int i = device.cdi_devices_size() - 1; i >= 0; --i) {
    auto found = core::claimed_device(device.cdi_devices(i).name(), device.driver_name(), device.device_name());
    if (found) return *std::move(found);
  }
  return {core::ClaimAccess::use, device.device_name()};
}

// By names of devices, of a shared one that of the share: the list of CDI ids grows from one entry to the next
// (docs/reference/kubelet.md#podresources), and would give each device those of all before it.
void add_claims(const v1::PodResources& pod, const v1::ContainerResources& container,
                std::vector<model::Allocation>& all) {
  std::map<std::pair<std::string, std::string>, ClaimPart> by_claim;  // claim, driver
  for (const auto& claim : container.dynamic_resources()) {
    const std::string name = claim.claim_name().empty() ? "(no name)" : name_of(claim.claim_name());
    for (const auto& device : claim.claim_resources()) {
      ClaimPart& part = by_claim[{name, name_of(device.driver_name())}];
      const core::ClaimedDevice own = claimed(device);
      (own.access == core::ClaimAccess::admin ? part.of_admin : part.held).insert(name_of(own.name));
      if (part.cdi_id.empty() && !device.cdi_devices().empty()) part.cdi_id = name_of(device.cdi_devices(0).name());
    }
  }
  for (auto& [key, part] : by_claim) {
    for (const std::string& id : part.held) part.of_admin.erase(id);
    for (const bool admin_access : {false, true}) {
      const Ids& devices = admin_access ? part.of_admin : part.held;
      if (devices.empty()) continue;
      model::Allocation one = holding_of(pod, container);
      std::tie(one.claim, one.resource_name) = key;
      one.ids.assign(devices.begin(), devices.end());
      one.cdi_id = part.cdi_id;
      one.admin_access = admin_access;
      all.push_back(std::move(one));
    }
  }
}

constexpr int kMaxAnswerBytes = 16 << 20;

// With bytes instead of messages: gRPC 1.51's callback API turns a malformed message into an empty one without an
// error, which would mean that no container holds anything.
struct BytesCall final : KeptCall {
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
};

// A call on a separate connection, kept until it is done. `done` receives a Result<Response>.
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

// The answer that `ask` passes to its callback. The callback shares the promise: it may still be in set_value when the
// waiter has returned.
template <typename Answer, typename Ask>
Result<Answer> wait_for(const Ask& ask) {
  const auto promise = std::make_shared<std::promise<Result<Answer>>>();
  auto answer = promise->get_future();
  ask([promise](Result<Answer> given) { promise->set_value(std::move(given)); });
  return answer.get();
}

}  // namespace

std::vector<model::Allocation> devices_in(const v1::ListPodResourcesResponse& response) {
  std::vector<model::Allocation> all;
  for (const auto& pod : response.pod_resources()) {
    const std::size_t before = all.size();
    for (const auto& container : pod.containers()) {
      add_resources(pod, container, all);
      add_claims(pod, container, all);
    }
    if (all.size() == before) all.push_back({name_of(pod.namespace_()), name_of(pod.name()), "", "", {}});
  }
  return all;
}

model::Allocatable allocatable_in(const v1::AllocatableResourcesResponse& response) {
  model::Allocatable all;
  for (const auto& devices : response.devices()) {
    auto& ids = all[name_of(devices.resource_name())];
    for (const auto& id : devices.device_ids()) ids.insert(name_of(id));
  }
  return all;
}

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

Result<model::Allocatable> PodResourcesClient::allocatable(std::chrono::milliseconds deadline) {
  return wait_for<model::Allocatable>([&](AllocatableDone done) { allocatable(deadline, std::move(done)); });
}

}  // namespace neuron::rpc
