#include "tools/neuron-sim/kubelet/pod_resources_server.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "agent/core/claim_cdi.h"
#include "agent/core/pool_names.h"
#include "tools/neuron-sim/kubelet/socket_dir.h"

namespace neuron::sim {
namespace {

constexpr std::chrono::seconds kShutdown{1};
constexpr std::string_view kAdminAccess = "admin:";
constexpr int kOversizedDevices = 20;  // with ids of 1 MiB each

// Answers every call with bytes that are no protobuf message.
class GarbageService final
    : public v1::PodResourcesLister::WithRawCallbackMethod_List<
          v1::PodResourcesLister::WithRawCallbackMethod_GetAllocatableResources<v1::PodResourcesLister::Service>> {
 public:
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const grpc::ByteBuffer* /*request*/,
                                 grpc::ByteBuffer* answer) override {
    return garble(context, answer);
  }
  grpc::ServerUnaryReactor* GetAllocatableResources(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* /*request*/,
                                                    grpc::ByteBuffer* answer) override {
    return garble(context, answer);
  }

 private:
  static grpc::ServerUnaryReactor* garble(grpc::CallbackServerContext* context, grpc::ByteBuffer* answer) {
    const grpc::Slice bytes("\xff\xff\xff\xff garbage \x0f");  // a field number out of range
    *answer = grpc::ByteBuffer(&bytes, 1);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

void fill(v1::ContainerDevices& out, const HeldDevice& device) {
  out.set_resource_name(device.resource);
  out.add_device_ids(device.id);
  if (device.numa_node) out.mutable_topology()->add_nodes()->set_id(*device.numa_node);
}

// The whole claim for each container that uses it, with a list of CDI ids that grows from one device to the next, as
// the kubelet has it (docs/reference/kubelet.md#podresources).
void fill(v1::DynamicResource& out, const std::string& ns, const std::string& claim,
          const std::vector<std::string>& devices) {
  out.set_claim_namespace(ns);
  out.set_claim_name(claim);
  std::vector<std::string> ids;
  for (std::string device : devices) {
    const bool is_admin = device.starts_with(kAdminAccess);
    if (is_admin) device.erase(0, kAdminAccess.size());
    v1::ClaimResource& entry = *out.add_claim_resources();
    entry.set_driver_name(std::string(core::kDefaultDriverName));
    entry.set_pool_name("node");
    entry.set_device_name(device);
    const auto access = is_admin ? core::ClaimAccess::admin : core::ClaimAccess::use;
    ids.push_back(core::claim_cdi_kind(core::kDefaultDriverName) + '=' + core::claim_cdi_name(claim, device, access));
    for (const std::string& id : ids) entry.add_cdi_devices()->set_name(id);
  }
}

void fill(v1::PodResources& out, const PodView& pod) {
  out.set_name(pod.name);
  out.set_namespace_(pod.ns);
  for (const ContainerView& container : pod.containers) {
    if (container.kind == ContainerKind::init) continue;  // only those that keep running are shown
    auto* view = out.add_containers();
    view->set_name(container.name);
    for (const HeldDevice& device : container.devices) fill(*view->add_devices(), device);
    for (const auto& [claim, devices] : container.claims) {
      fill(*view->add_dynamic_resources(), pod.ns, claim, devices);
    }
  }
}

template <typename Repeated>
void pad(Repeated& devices) {
  for (int i = 0; i < kOversizedDevices; ++i) {
    fill(*devices.Add(), {"example.com/padding", fmt::format("{}-{:0>{}}", i, "", 1 << 20), 0});
  }
}

}  // namespace

PodResourcesServer::PodResourcesServer(DeviceManager& manager, const KubeletOptions& options, std::string dir)
    : manager_(manager), dir_(std::move(dir)), fault_(options.faults.pod_resources) {}

PodResourcesServer::~PodResourcesServer() {
  stop();
}

Result<void> PodResourcesServer::start() {
  TRY(make_directory(dir_));
  return listen();
}

Result<void> PodResourcesServer::listen() {
  const std::string path = dir_ + "/kubelet.sock";
  TRY(check_socket_path(path));
  bool garbage = false;
  {
    MutexLock lock(mutex_);
    garbage = fault_ == PodResourcesFault::garbage;
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  garbage_ = garbage ? std::make_unique<GarbageService>() : nullptr;
  builder.RegisterService(garbage ? garbage_.get() : this);
  server_ = builder.BuildAndStart();
  if (!server_) return fail(ErrorCode::unavailable, "cannot listen on " + path);
  return {};
}

void PodResourcesServer::close_socket() {
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
  server_.reset();
}

void PodResourcesServer::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    released_.notify_all();
  }
  close_socket();
}

Result<void> PodResourcesServer::set_fault(PodResourcesFault fault) {
  bool rebind = false;
  {
    MutexLock lock(mutex_);
    rebind = !stopping_ && (fault == PodResourcesFault::garbage) != (fault_ == PodResourcesFault::garbage);
    fault_ = fault;
    released_.notify_all();
  }
  if (!rebind) return {};
  close_socket();
  return listen();
}

grpc::Status PodResourcesServer::admit_call(PodResourcesFault& fault) {
  MutexLock lock(mutex_);
  while (fault_ == PodResourcesFault::hangs && !stopping_) released_.wait(mutex_);
  if (stopping_) return {grpc::UNAVAILABLE, "the kubelet ends"};
  fault = fault_;
  if (fault == PodResourcesFault::error) return {grpc::UNKNOWN, "refused by a simulated fault"};
  return grpc::Status::OK;
}

grpc::Status PodResourcesServer::List(grpc::ServerContext* /*context*/, const v1::ListPodResourcesRequest* /*request*/,
                                      v1::ListPodResourcesResponse* answer) {
  ++list_calls_;
  manager_.notify();
  PodResourcesFault fault = PodResourcesFault::none;
  if (grpc::Status status = admit_call(fault); !status.ok()) return status;
  manager_.update_allocated();  // the side effect
  for (const PodView& pod : manager_.pods()) fill(*answer->add_pod_resources(), pod);
  if (fault == PodResourcesFault::oversized) pad(*answer->add_pod_resources()->add_containers()->mutable_devices());
  return grpc::Status::OK;
}

grpc::Status PodResourcesServer::GetAllocatableResources(grpc::ServerContext* /*context*/,
                                                         const v1::AllocatableResourcesRequest* /*request*/,
                                                         v1::AllocatableResourcesResponse* answer) {
  PodResourcesFault fault = PodResourcesFault::none;
  if (grpc::Status status = admit_call(fault); !status.ok()) return status;
  for (const HeldDevice& device : manager_.allocatable_devices()) fill(*answer->add_devices(), device);
  if (fault == PodResourcesFault::oversized) pad(*answer->mutable_devices());
  return grpc::Status::OK;
}

}  // namespace neuron::sim
