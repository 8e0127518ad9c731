#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/v1beta1/api.grpc.pb.h"
#include "podresources/v1/api.grpc.pb.h"
#include "test/fakes/fake_kubelet.h"

namespace neuron::sim {

using fakes::AdmissionStep;
using fakes::ClosingSocket;
using fakes::FakeKubelet;
using fakes::FakeKubeletOptions;
using fakes::PodResourcesFault;
using fakes::RegisterFault;

}  // namespace neuron::sim

namespace neuron::sim::test {

inline constexpr std::chrono::seconds kPatience{10};  // a wait that takes this long has failed

// A directory of its own under /tmp (short enough for sockets), removed with all in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct TestDevice {
  std::string id;
  bool healthy = true;
  std::vector<int> numa = {};
};

// "0" … "count-1", healthy, on NUMA node i * nodes / count; without topology when nodes is 0.
std::vector<TestDevice> numbered_devices(int count, int nodes = 0);

// The smallest device plugin there can be: it serves one resource on a socket and writes down what it is asked.
class TestPlugin final : public v1beta1::DevicePlugin::WithCallbackMethod_ListAndWatch<v1beta1::DevicePlugin::Service> {
 public:
  struct Behaviour {
    bool preferred = false, pre_start = false;
    std::function<grpc::Status(const v1beta1::ContainerPreferredAllocationRequest&,
                               v1beta1::ContainerPreferredAllocationResponse&)>
        on_preferred = {};
    std::function<grpc::Status(const std::vector<std::string>&, v1beta1::AllocateResponse&)> on_allocate = {};
    std::function<grpc::Status()> on_pre_start = {};
    std::function<grpc::Status()> on_options = {};
  };

  TestPlugin(const FakeKubelet& kubelet, std::string resource, std::string endpoint, std::vector<TestDevice> devices);
  TestPlugin(const FakeKubelet& kubelet, std::string resource, std::string endpoint, std::vector<TestDevice> devices,
             Behaviour behaviour);
  ~TestPlugin() override;

  // One call of Register, with a deadline.
  grpc::Status register_plugin(const std::string& version = "v1beta1");
  // A new list to every open stream.
  void set_devices(std::vector<TestDevice> devices);
  // Ends every stream with OK, as a plugin that shuts down.
  void end_streams();

  int open_streams();
  std::vector<std::vector<std::string>> allocations();  // the ids of each Allocate, as they came
  std::vector<v1beta1::ContainerPreferredAllocationRequest> preferences();
  int pre_starts();
  std::string authority();                                // that the kubelet sent with its last call
  bool wait_for(const std::function<bool()>& predicate);  // no lock held while it is evaluated

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* answer) override;
  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(grpc::CallbackServerContext* context,
                                                                        const v1beta1::Empty* request) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* context, const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* answer) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* answer) override;
  grpc::Status PreStartContainer(grpc::ServerContext* context, const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* answer) override;

 private:
  class Stream;
  void changed();

  const std::string kubelet_socket_, resource_, endpoint_;
  const Behaviour behaviour_;
  std::mutex mutex_;
  std::condition_variable condition_;
  unsigned generation_ = 0;
  bool closing_ = false;
  v1beta1::ListAndWatchResponse list_;
  std::set<Stream*> streams_;
  std::vector<std::vector<std::string>> allocations_;
  std::vector<v1beta1::ContainerPreferredAllocationRequest> preferences_;
  int pre_starts_ = 0;
  std::string authority_;
  std::unique_ptr<grpc::Server> server_;
};

// PodResources of this kubelet, with a deadline of `timeout` on each call.
class PodResourcesCaller {
 public:
  explicit PodResourcesCaller(const FakeKubelet& kubelet, std::chrono::milliseconds timeout = kPatience);
  grpc::Status list(v1::ListPodResourcesResponse& answer);
  grpc::Status allocatable(v1::AllocatableResourcesResponse& answer);

 private:
  std::chrono::milliseconds timeout_;
  std::unique_ptr<v1::PodResourcesLister::Stub> stub_;
};

// A kubelet in a directory of its own; the test fails when it does not start.
class KubeletTest {
 public:
  explicit KubeletTest(FakeKubeletOptions options = {});
  FakeKubelet& operator*() { return *kubelet_; }
  FakeKubelet* operator->() { return kubelet_.get(); }
  // Waits until so many units are allocatable.
  bool reaches(const std::string& resource, int allocatable);

 private:
  TempDir dir_;
  std::unique_ptr<FakeKubelet> kubelet_;
};

// A pod with one container, "main".
PodSpec pod_of(const std::string& name, std::map<std::string, int> requests);

}  // namespace neuron::sim::test
