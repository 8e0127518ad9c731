#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/list_hub.h"
#include "agent/base/mutex.h"
#include "agent/grant/grant.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/slices/pool.h"
#include "plugin/kubelet/node_view.h"

namespace neuron::plugin::dra {

// The health of one device for the kubelet, which shows it in the status of pods and does not act on it (taints do).
struct DeviceHealth {
  enum class State { unknown, healthy, unhealthy };
  std::string device;  // as in the slice
  State state = State::unknown;
  std::string message;  // finding and action; at most kMostMessage bytes
  friend bool operator==(const DeviceHealth&, const DeviceHealth&) = default;
};

struct HealthList {
  std::string pool;
  std::vector<DeviceHealth> devices;  // all of the pool, in its order
  friend bool operator==(const HealthList&, const HealthList&) = default;
};
using HealthListPtr = std::shared_ptr<const HealthList>;
using HealthHub = ListHub<HealthList>;  // to every stream of the kubelet

inline constexpr std::size_t kMostMessage = 1024;  // of the protocol

// A core has its own health, a group and the node that of their worst device. Degraded counts as healthy, with the
// message. A device of the pool that the snapshot lacks is unhealthy, or unknown while its list was never read. Pure.
[[nodiscard]] HealthList make_health_list(const Pool& pool, const grant::NodeUnits& node, std::string pool_name);

// The current node for slices, health and claims: each new generation and each change of held devices gives a
// pool to the publisher and a health list to the kubelet. While claims hold devices, cores keep the numbers that they
// had when these were prepared, whatever the node's LNC is now (docs/adr/0011-dra.md). Thread-safe.
class NodeBoard {
 public:
  struct Settings {
    PoolOptions pool;
    std::string pool_name;
  };
  using Publish = std::function<void(Pool)>;  // must not block
  // Held hardware, by those that know it; none may block.
  struct Held {
    std::function<std::vector<std::string>()> devices;           // names of pool devices that claims hold
    std::function<HeldNumbering()> numbering{};                  // of held cores; empty function: no claim holds any
    std::function<void(Pool&, const grant::NodeUnits&)> mark{};  // adds taints of other holders
  };

  // `health` must outlive it.
  NodeBoard(Settings settings, Publish publish, HealthHub& health)
      : settings_(std::move(settings)), publish_(std::move(publish)), health_hub_(health) {}

  // Set later than at construction, because RecordStore and PluginHoldWatch need node() first; once, before set_node()
  // and held_changed().
  void set_held(Held held) { sources_ = std::move(held); }

  void set_node(grant::NodeUnitsPtr node) EXCLUDES(mutex_);  // never null
  void held_changed() EXCLUDES(mutex_);   // held devices may have changed; does nothing before the first node
  void marks_changed() EXCLUDES(mutex_);  // the same of `mark`

  [[nodiscard]] grant::NodeUnitsPtr node() const EXCLUDES(mutex_);  // nullptr before the first
  // Another scan of this node, with the core numbers of node().
  [[nodiscard]] grant::NodeUnitsPtr numbered(grant::NodeUnitsPtr scanned) const EXCLUDES(mutex_);
  // Renumbers the cores of a snapshot; returns `scanned` itself where nothing differs. nullptr stays nullptr.
  [[nodiscard]] model::SnapshotPtr numbered(model::SnapshotPtr scanned) const EXCLUDES(mutex_);
  [[nodiscard]] bool is_empty() const EXCLUDES(mutex_);  // there is a node, and its pool is empty

 private:
  void choose_numbering() REQUIRES(mutex_);
  void publish() REQUIRES(mutex_);

  const Settings settings_;
  const Publish publish_;
  HealthHub& health_hub_;
  Held sources_;
  mutable Mutex mutex_;  // one pool after the other
  NodeView view_ GUARDED_BY(mutex_);
  std::vector<std::string> held_ GUARDED_BY(mutex_);
  HealthListPtr health_ GUARDED_BY(mutex_);  // published last; null before the first
  bool empty_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron::plugin::dra
