#include "test/unit/kubelet/test_plugin.h"

#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <utility>

namespace neuron::sim::test {
namespace {

// Keeps gRPC initialised from the first test to the end of the process: its own shutdown after each test waits up to
// 10 s for the transport of a call that was cut in the middle of a large message.
class KeepGrpc final : public ::testing::Environment {
 public:
  void SetUp() override { grpc_init(); }
};
[[maybe_unused]] const auto* const kKeepGrpc = ::testing::AddGlobalTestEnvironment(new KeepGrpc);

auto deadline() {
  return std::chrono::system_clock::now() + kPatience;
}

v1beta1::ListAndWatchResponse to_message(const std::vector<TestDevice>& devices) {
  v1beta1::ListAndWatchResponse message;
  for (const TestDevice& device : devices) {
    auto* out = message.add_devices();
    out->set_id(device.id);
    out->set_health(device.healthy ? "Healthy" : "Unhealthy");
    for (const int node : device.numa) out->mutable_topology()->add_nodes()->set_id(node);
  }
  return message;
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = "/tmp/nsk-XXXXXX";
  const char* made = ::mkdtemp(pattern.data());
  if (made == nullptr) std::abort();
  path_ = made;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<TestDevice> numbered_devices(int count, int nodes) {
  std::vector<TestDevice> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back({std::to_string(i), true, nodes == 0 ? std::vector<int>() : std::vector<int>{i * nodes / count}});
  }
  return devices;
}

// All calls with the plugin's lock held, except OnDone. One write in flight; the newest list follows.
class TestPlugin::Stream final : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
 public:
  explicit Stream(TestPlugin& plugin) : plugin_(plugin) {}

  void offer() {
    stale_ = true;
    if (!writing_ && !finished_) write();
  }
  void finish() {
    ending_ = true;
    if (!writing_) finish_now();
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(plugin_.mutex_);
    writing_ = false;
    if (!ok || ending_) {
      finish_now();
    } else if (stale_) {
      write();
    }
  }
  void OnCancel() override {
    const std::lock_guard lock(plugin_.mutex_);
    finish();
  }
  void OnDone() override {
    {
      const std::lock_guard lock(plugin_.mutex_);
      plugin_.streams_.erase(this);
      plugin_.changed();
    }
    delete this;
  }

 private:
  void write() {
    stale_ = false;
    writing_ = true;
    message_ = plugin_.list_;
    StartWrite(&message_);
  }
  void finish_now() {
    if (!std::exchange(finished_, true)) Finish(grpc::Status::OK);
  }

  TestPlugin& plugin_;
  v1beta1::ListAndWatchResponse message_;
  bool stale_ = false, writing_ = false, ending_ = false, finished_ = false;
};

TestPlugin::TestPlugin(const FakeKubelet& kubelet, std::string resource, std::string endpoint,
                       std::vector<TestDevice> devices)
    : TestPlugin(kubelet, std::move(resource), std::move(endpoint), std::move(devices), Behaviour()) {}

TestPlugin::TestPlugin(const FakeKubelet& kubelet, std::string resource, std::string endpoint,
                       std::vector<TestDevice> devices, Behaviour behaviour)
    : kubelet_socket_(kubelet.kubelet_socket()),
      resource_(std::move(resource)),
      endpoint_(std::move(endpoint)),
      behaviour_(std::move(behaviour)),
      list_(to_message(devices)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + kubelet.device_plugin_dir() + "/" + endpoint_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

TestPlugin::~TestPlugin() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  end_streams();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  wait_for([this] { return open_streams() == 0; });
}

grpc::Status TestPlugin::register_plugin(const std::string& version) {
  const auto channel = grpc::CreateChannel("unix:" + kubelet_socket_, grpc::InsecureChannelCredentials());
  const auto stub = v1beta1::Registration::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(deadline());
  v1beta1::RegisterRequest request;
  request.set_version(version);
  request.set_endpoint(endpoint_);
  request.set_resource_name(resource_);
  v1beta1::Empty answer;
  return stub->Register(&context, request, &answer);
}

void TestPlugin::set_devices(std::vector<TestDevice> devices) {
  const std::lock_guard lock(mutex_);
  list_ = to_message(devices);
  for (Stream* stream : streams_) stream->offer();
}

void TestPlugin::end_streams() {
  const std::lock_guard lock(mutex_);
  for (Stream* stream : streams_) stream->finish();
}

int TestPlugin::open_streams() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(streams_.size());
}

std::vector<std::vector<std::string>> TestPlugin::allocations() {
  const std::lock_guard lock(mutex_);
  return allocations_;
}

std::vector<v1beta1::ContainerPreferredAllocationRequest> TestPlugin::preferences() {
  const std::lock_guard lock(mutex_);
  return preferences_;
}

int TestPlugin::pre_starts() {
  const std::lock_guard lock(mutex_);
  return pre_starts_;
}

std::string TestPlugin::authority() {
  const std::lock_guard lock(mutex_);
  return authority_;
}

void TestPlugin::changed() {
  ++generation_;
  condition_.notify_all();
}

bool TestPlugin::wait_for(const std::function<bool()>& predicate) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    unsigned seen = 0;
    {
      const std::lock_guard lock(mutex_);
      seen = generation_;
    }
    if (predicate()) return true;
    std::unique_lock lock(mutex_);
    if (!condition_.wait_until(lock, until, [&] { return generation_ != seen; })) return false;
  }
}

grpc::Status TestPlugin::GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* /*request*/,
                                                v1beta1::DevicePluginOptions* answer) {
  if (behaviour_.on_options) {
    if (grpc::Status status = behaviour_.on_options(); !status.ok()) return status;
  }
  answer->set_get_preferred_allocation_available(behaviour_.preferred);
  answer->set_pre_start_required(behaviour_.pre_start);
  const std::lock_guard lock(mutex_);
  authority_ = std::string(context->ExperimentalGetAuthority().data(), context->ExperimentalGetAuthority().size());
  return grpc::Status::OK;
}

grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* TestPlugin::ListAndWatch(
    grpc::CallbackServerContext* /*context*/, const v1beta1::Empty* /*request*/) {
  auto* stream = new Stream(*this);  // deletes itself in OnDone
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
  if (closing_) {
    stream->finish();
  } else {
    stream->offer();
  }
  changed();
  return stream;
}

grpc::Status TestPlugin::GetPreferredAllocation(grpc::ServerContext* /*context*/,
                                                const v1beta1::PreferredAllocationRequest* request,
                                                v1beta1::PreferredAllocationResponse* answer) {
  {
    const std::lock_guard lock(mutex_);
    preferences_.push_back(request->container_requests(0));
    changed();
  }
  auto* container = answer->add_container_responses();
  return behaviour_.on_preferred ? behaviour_.on_preferred(request->container_requests(0), *container)
                                 : grpc::Status::OK;
}

grpc::Status TestPlugin::Allocate(grpc::ServerContext* /*context*/, const v1beta1::AllocateRequest* request,
                                  v1beta1::AllocateResponse* answer) {
  const auto& asked = request->container_requests(0).devices_ids();
  const std::vector<std::string> ids(asked.begin(), asked.end());
  {
    const std::lock_guard lock(mutex_);
    allocations_.push_back(ids);
    changed();
  }
  if (behaviour_.on_allocate) return behaviour_.on_allocate(ids, *answer);
  auto* container = answer->add_container_responses();
  for (const std::string& id : ids) {
    auto* device = container->add_devices();
    device->set_container_path("/dev/test" + id);
    device->set_host_path("/dev/test" + id);
    device->set_permissions("rw");
  }
  return grpc::Status::OK;
}

grpc::Status TestPlugin::PreStartContainer(grpc::ServerContext* /*context*/,
                                           const v1beta1::PreStartContainerRequest* /*request*/,
                                           v1beta1::PreStartContainerResponse* /*answer*/) {
  {
    const std::lock_guard lock(mutex_);
    ++pre_starts_;
    changed();
  }
  return behaviour_.on_pre_start ? behaviour_.on_pre_start() : grpc::Status::OK;
}

PodResourcesCaller::PodResourcesCaller(const FakeKubelet& kubelet, std::chrono::milliseconds timeout)
    : timeout_(timeout),
      stub_(v1::PodResourcesLister::NewStub(
          grpc::CreateChannel("unix:" + kubelet.pod_resources_socket(), grpc::InsecureChannelCredentials()))) {}

grpc::Status PodResourcesCaller::list(v1::ListPodResourcesResponse& answer) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout_);
  return stub_->List(&context, {}, &answer);
}

grpc::Status PodResourcesCaller::allocatable(v1::AllocatableResourcesResponse& answer) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout_);
  return stub_->GetAllocatableResources(&context, {}, &answer);
}

KubeletTest::KubeletTest(FakeKubeletOptions options) {
  auto started = FakeKubelet::start(dir_.path(), std::move(options));
  if (!started) {
    ADD_FAILURE() << started.error().message;
    std::abort();
  }
  kubelet_ = *std::move(started);
}

bool KubeletTest::reaches(const std::string& resource, int allocatable) {
  return kubelet_->wait_for([&] { return kubelet_->allocatable(resource) == allocatable; }, kPatience);
}

PodSpec pod_of(const std::string& name, std::map<std::string, int> requests) {
  PodSpec pod;
  pod.name = name;
  pod.containers.push_back({"main", ContainerKind::app, std::move(requests)});
  return pod;
}

}  // namespace neuron::sim::test
