#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/base/workers.h"
#include "agent/rpc/calls.h"
#include "agent/rpc/pod_resources.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/device/plugin_server.h"

namespace neuron::plugin {

// Registers resources with the kubelet behind one socket. One thread.
class KubeletRegistration {
 public:
  using Done = std::function<void(std::optional<Error>)>;  // once, on a gRPC thread; nullopt = registered

  explicit KubeletRegistration(std::string kubelet_socket) : socket_(std::move(kubelet_socket)) {}

  // Registers `resource` with the kubelet, served at `endpoint`, a file name beside its socket. The kubelet dials back
  // before it answers, so the plugin must be serving. Never blocks. A new connection each time.
  void start(model::Resource resource, const std::string& endpoint, std::chrono::milliseconds deadline, Done done);

  void close_finished() { calls_.drop_finished(); }  // the connections of registrations that are done

 private:
  std::string socket_;
  rpc::CallKeeper calls_;
};

// The kubelet itself, over its sockets. Answers are posted to the parts' event queue: RegisterDone within 15 s,
// HoldersListed and AllocatableListed within 2 s, errors included. Nothing here blocks on the kubelet; on a directory
// that hangs a call blocks for kBudget, further ones not at all until it answers, and questions get the answer that
// changes nothing.
class KubeletLink final : public KubeletPort {
 public:
  static constexpr std::chrono::milliseconds kBudget{1000};  // of one call on a directory

  // The directory of the sockets, and the guard for calls there that may hang.
  struct Places {
    std::string directory;
    const BoundedCalls& directory_calls;
    std::string pod_resources_socket;
    const BoundedCalls& pod_resources_calls;
  };

  // `instance`: part of every endpoint's name, unique per process. All `parts` must outlive it, its servers and calls
  // that hang.
  KubeletLink(Places places, std::string instance, const DevicePluginService::Parts& parts);
  ~KubeletLink() override;  // leaves clients behind whose directory hangs
  KubeletLink(const KubeletLink&) = delete;
  KubeletLink& operator=(const KubeletLink&) = delete;

  [[nodiscard]] Result<std::unique_ptr<ResourceServer>> serve(model::Resource resource) override;
  [[nodiscard]] bool exists(const std::string& endpoint) const override;
  [[nodiscard]] bool is_listening(const std::string& socket) const override;
  [[nodiscard]] std::uint64_t kubelet() const override;
  void start_registration(model::Resource resource, const std::string& endpoint) override;
  void ask_holders(SteadyTime now) override;
  void ask_allocatable(SteadyTime now) override;

  // Closes the connections of calls that are done; to be called now and then.
  void close_finished();

 private:
  const Places places_;
  const std::string instance_;
  const DevicePluginService::Parts parts_;
  std::shared_ptr<KubeletRegistration> registration_;  // shared with calls that hang, as is
  std::shared_ptr<rpc::PodResourcesClient> pod_resources_;
  mutable std::uint64_t kubelet_ = 0;  // as last known
  int endpoints_made_ = 0;
};

}  // namespace neuron::plugin
