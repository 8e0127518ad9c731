#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"

namespace neuron::sim {

// A failed call as the kubelet's messages show it: "rpc error: code = InvalidArgument desc = <text>". `status` must
// not be OK.
[[nodiscard]] Error error_from_status(const grpc::Status& status);

struct PluginOptions {
  bool pre_start_required = false;
  bool preferred_allocation_available = false;
};

// The kubelet's connection to one plugin socket: authority "localhost", at most 4 MiB per message. Every call blocks
// and may be made from any thread; disconnect() ends those in flight with CANCELLED and all later ones. Errors of
// calls: error_from_status().
class PluginClient {
 public:
  PluginClient(std::string resource, std::string socket_path);
  virtual ~PluginClient() = default;
  PluginClient(const PluginClient&) = delete;
  PluginClient& operator=(const PluginClient&) = delete;

  [[nodiscard]] const std::string& resource() const { return resource_; }
  [[nodiscard]] const std::string& socket_path() const { return socket_path_; }

  // Waits until the plugin accepts, at most `timeout`; gives up soon after `stopping` becomes true.
  // Errors: deadline_exceeded "failed to dial device plugin: context deadline exceeded".
  [[nodiscard]] Result<void> dial(std::chrono::milliseconds timeout, const std::atomic<bool>& stopping);

  // Ends with `register_call`, whose deadline and cancellation it inherits.
  [[nodiscard]] virtual Result<PluginOptions> options(const grpc::ServerContext& register_call);

  // Hands each message to `sink`, in this thread, until the stream ends; returns why it ended.
  [[nodiscard]] grpc::Status watch(const std::function<void(const v1beta1::ListAndWatchResponse&)>& sink);

  // The ids of the first container response; empty when there is none. No timeout, here and in allocate().
  [[nodiscard]] virtual Result<std::vector<std::string>> preferred(const std::vector<std::string>& available,
                                                                   const std::vector<std::string>& must_include,
                                                                   int size);
  // The first container response. Errors: internal "no containers return in allocation response" when there is none.
  [[nodiscard]] virtual Result<v1beta1::ContainerAllocateResponse> allocate(const std::vector<std::string>& ids);
  [[nodiscard]] Result<void> pre_start(const std::vector<std::string>& ids);  // within 30 s

  void disconnect();

 private:
  // One RPC in flight: known to the client, so that disconnect() can end it.
  class Call {
   public:
    Call(PluginClient& client, std::unique_ptr<grpc::ClientContext> context);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    [[nodiscard]] grpc::ClientContext* context() { return context_.get(); }

   private:
    PluginClient& client_;
    std::unique_ptr<grpc::ClientContext> context_;
  };

  const std::string resource_, socket_path_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  Mutex mutex_;
  bool disconnected_ GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ GUARDED_BY(mutex_);
};

}  // namespace neuron::sim
