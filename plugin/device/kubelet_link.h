#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "agent/base/workers.h"
#include "agent/rpc/pod_resources.h"
#include "plugin/device/device_plugin_service.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/kubelet/kubelet_registration.h"

namespace neuron::plugin {

// The kubelet itself, over its sockets. Answers are posted to the parts' event queue: RegisterDone within 15 s,
// HoldersListed and AllocatableListed within 2 s, errors included. Nothing here blocks on the kubelet; on a directory
// that hangs a call blocks for kBudget, further ones not at all until it answers, and questions get the answer that
// changes nothing.
class KubeletLink final : public KubeletPort {
 public:
  static constexpr std::chrono::milliseconds kBudget{1000};  // of one call on a directory

  // Where sockets are, and for calls there that may hang.
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
  [[nodiscard]] bool somebody_listens(const std::string& socket) const override;
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
