#pragma once

#include <string>

#include "agent/rpc/pod_resources.h"
#include "plugin/device/device_plugin_service.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/kubelet/kubelet_registration.h"

namespace neuron::plugin {

// The kubelet itself, over its sockets. Answers are posted to the parts' event queue: RegisterDone within 15 s,
// HoldersListed and AllocatableListed within 2 s, errors included. Nothing here blocks on the kubelet.
class KubeletLink final : public KubeletPort {
 public:
  // `instance`: part of every endpoint's name, unique per process. All `parts` must outlive it and its servers.
  KubeletLink(std::string directory, std::string pod_resources_socket, std::string instance,
              const DevicePluginService::Parts& parts);

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
  const std::string directory_;
  const std::string instance_;
  const DevicePluginService::Parts parts_;
  KubeletRegistration registration_;
  rpc::PodResourcesClient pod_resources_;
  int endpoints_made_ = 0;
};

}  // namespace neuron::plugin
