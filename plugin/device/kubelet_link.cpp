#include "plugin/device/kubelet_link.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "plugin/device/plugin_server.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRegisterDeadline{15000};  // the kubelet itself dials back for up to 10 s
constexpr milliseconds kListDeadline{2000};
constexpr milliseconds kAllocatableDeadline{2000};

}  // namespace

KubeletLink::KubeletLink(std::string directory, std::string pod_resources_socket, std::string instance,
                         const DevicePluginService::Parts& parts)
    : directory_(std::move(directory)),
      instance_(std::move(instance)),
      parts_(parts),
      registration_(directory_ + "/" + std::string(kKubeletSocket)),
      pod_resources_(std::move(pod_resources_socket)) {}

Result<std::unique_ptr<ResourceServer>> KubeletLink::serve(model::Resource resource) {
  TRY_ASSIGN(auto server,
             PluginServer::start(resource, directory_, endpoint_name(resource, instance_, ++endpoints_made_), parts_));
  return server;
}

bool KubeletLink::exists(const std::string& endpoint) const {
  struct stat info {};
  return ::stat((directory_ + "/" + endpoint).c_str(), &info) == 0;
}

bool KubeletLink::somebody_listens(const std::string& socket) const {
  const SocketState state = socket_state(directory_ + "/" + socket);
  return state != SocketState::dead && state != SocketState::missing;
}

std::uint64_t KubeletLink::kubelet() const {
  struct stat info {};
  if (::stat((directory_ + "/" + std::string(kKubeletSocket)).c_str(), &info) != 0) return 0;
  const auto changed = static_cast<std::uint64_t>(info.st_ctim.tv_sec) * 1'000'000'000U +
                       static_cast<std::uint64_t>(info.st_ctim.tv_nsec);
  return std::max<std::uint64_t>(changed ^ (static_cast<std::uint64_t>(info.st_ino) << 1U), 1);
}

void KubeletLink::start_registration(model::Resource resource, const std::string& endpoint) {
  registration_.start(resource, endpoint, kRegisterDeadline,
                      [&parts = parts_, resource, endpoint](std::optional<Error> error) {
                        if (!error && parts.figures != nullptr)
                          parts.figures->registered(model::resource_name(resource));
                        parts.events.post(RegisterDone{resource, endpoint, std::move(error)});
                      });
}

void KubeletLink::ask_holders(SteadyTime now) {
  pod_resources_.list(kListDeadline, [&events = parts_.events, now](Result<std::vector<model::Allocation>> answer) {
    events.post(HoldersListed{now, std::move(answer)});
  });
}

void KubeletLink::ask_allocatable(SteadyTime now) {
  pod_resources_.allocatable(kAllocatableDeadline, [&events = parts_.events, now](Result<model::Allocatable> answer) {
    events.post(AllocatableListed{now, std::move(answer)});
  });
}

void KubeletLink::close_finished() {
  registration_.close_finished();
  pod_resources_.close_finished();
}

}  // namespace neuron::plugin
