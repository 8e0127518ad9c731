#include "agent/rpc/pod_resources.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "agent/rpc/status_map.h"
#include "podresources/v1/api.grpc.pb.h"

namespace neuron::rpc {
namespace {

constexpr int kMaxAnswerBytes = 16 << 20;
constexpr std::size_t kMaxNameBytes = 512;

struct Call {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::PodResourcesLister::Stub> stub;
  grpc::ClientContext context;
  v1::ListPodResourcesRequest request;
  v1::ListPodResourcesResponse response;
};

std::string name_of(const std::string& foreign) { return printable(foreign, kMaxNameBytes); }

std::vector<PodDevices> convert(const v1::ListPodResourcesResponse& response) {
  std::vector<PodDevices> all;
  for (const auto& pod : response.pod_resources()) {
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
  }
  return all;
}

}  // namespace

PodResourcesClient::PodResourcesClient(std::string socket) : socket_(std::move(socket)) {}

void PodResourcesClient::list(std::chrono::milliseconds deadline, Done done) const {
  auto call = std::make_shared<Call>();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  call->channel = grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), arguments);
  call->stub = v1::PodResourcesLister::NewStub(call->channel);
  call->context.set_deadline(std::chrono::system_clock::now() + deadline);
  Call* raw = call.get();
  raw->stub->async()->List(&raw->context, &raw->request, &raw->response,
                           [call = std::move(call), done = std::move(done)](const grpc::Status& status) {
                             if (status.ok()) {
                               done(convert(call->response));
                             } else {
                               done(fail(to_error(status, "PodResources List")));
                             }
                           });
}

}  // namespace neuron::rpc
