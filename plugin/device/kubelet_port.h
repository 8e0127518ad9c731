#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/base/workers.h"
#include "agent/model/allocation.h"
#include "agent/model/resource.h"
#include "plugin/device/units.h"

// Calls to the kubelet, and the events that come back.
namespace neuron::plugin {

// Events from other threads for the main thread.
struct SnapshotChanged {};
struct StreamEnded {  // the kubelet, not the agent, ended a ListAndWatch
  model::Resource resource{};
};
struct RegisterDone {
  model::Resource resource{};
  std::string endpoint;
  std::optional<Error> error;
};
struct StreamOpened {};        // the kubelet watches a resource now
struct AdmissionsChanged {};   // AdmissionGate::next() may be sooner than it was
struct CheckpointCameBack {};  // a read of it that hung has ended
struct HoldersListed {
  SteadyTime asked_at;
  Result<std::vector<model::Allocation>> answer;
};
struct AllocatableListed {
  SteadyTime asked_at;
  Result<model::Allocatable> answer;
};
struct CdiMountDead {};  // the CDI directory was removed on the host, and the mount here keeps the old one
using Event = std::variant<SnapshotChanged, StreamEnded, StreamOpened, RegisterDone, AdmissionsChanged,
                           CheckpointCameBack, HoldersListed, AllocatableListed, CdiMountDead>;
using EventQueue = EventQueueOf<Event>;

// One resource that is served on a socket of its own; see PluginServer. Its end closes it.
class ResourceServer {
 public:
  virtual ~ResourceServer() = default;
  [[nodiscard]] virtual const std::string& endpoint() const = 0;  // the socket's name in the kubelet's directory
  [[nodiscard]] virtual std::size_t watchers() const = 0;         // open ListAndWatch streams
  virtual void publish(UnitListPtr units) = 0;                    // to all watchers, now and later
  virtual void end_streams() = 0;                                 // those that are open now
  virtual void close() = 0;                                       // ends every stream and every wait; idempotent
};

// All that ServedResources does with the kubelet. Answers come later, as the event beside each call. One thread.
class KubeletPort {
 public:
  virtual ~KubeletPort() = default;
  // A server under a socket name that was never used before. Errors: as PluginServer::start.
  [[nodiscard]] virtual Result<std::unique_ptr<ResourceServer>> serve(model::Resource resource) = 0;
  [[nodiscard]] virtual bool exists(const std::string& endpoint) const = 0;  // false: no such socket file
  // False when the file is missing or no process listens on it; true also when that is unknown.
  [[nodiscard]] virtual bool is_listening(const std::string& socket) const = 0;
  // Identity of the kubelet's socket, which distinguishes a kubelet from its successor; 0 when there is none.
  [[nodiscard]] virtual std::uint64_t kubelet() const = 0;
  virtual void start_registration(model::Resource resource, const std::string& endpoint) = 0;  // RegisterDone
  virtual void ask_holders(SteadyTime now) = 0;                                                // HoldersListed
  virtual void ask_allocatable(SteadyTime now) = 0;                                            // AllocatableListed
};

}  // namespace neuron::plugin
