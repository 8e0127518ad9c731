#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/hardware.h"
#include "plugin/dra/serve/health_list.h"
#include "plugin/dra/slices/pool.h"

namespace neuron::plugin::dra {

// What this node is, for all who ask: the newest units for claims, their pool for the publisher, their health for the
// kubelet. While claims hold devices, cores keep the numbers that they had when these were prepared, whatever LNC the
// node is set to by now (docs/adr/0011-dra.md). Thread-safe.
class NodeBoard {
 public:
  struct Settings {
    PoolOptions pool;
    std::string pool_name;
  };
  struct Ports {
    std::function<std::vector<std::string>()> held;  // names of pool devices that claims hold; must not block
    std::function<void(Pool)> publish;               // must not block
    HealthHub& health;
    std::function<void(Pool&, const grant::NodeUnits&)> mark{};  // what else the pool has to say; must not block
    std::function<HeldNumbering()> numbering{};                  // of what claims hold; must not block. Empty: none do
  };

  NodeBoard(Settings settings, Ports ports) : settings_(std::move(settings)), ports_(std::move(ports)) {}

  void set_node(grant::NodeUnitsPtr node) EXCLUDES(mutex_);  // never null
  void held_changed() EXCLUDES(mutex_);                      // perhaps; nothing before the first node
  void marks_changed() EXCLUDES(mutex_);                     // the same

  [[nodiscard]] grant::NodeUnitsPtr node() const EXCLUDES(mutex_);  // nullptr before the first
  // Another scan of this node, with the numbers that node() has.
  [[nodiscard]] grant::NodeUnitsPtr numbered(grant::NodeUnitsPtr scanned) const EXCLUDES(mutex_);
  // The same without its units; `scanned` itself where nothing differs. nullptr stays nullptr.
  [[nodiscard]] model::SnapshotPtr numbered(model::SnapshotPtr scanned) const EXCLUDES(mutex_);
  [[nodiscard]] bool is_empty() const EXCLUDES(mutex_);  // there is a node, and nothing on it to publish

 private:
  void choose_numbering() REQUIRES(mutex_);
  void show() REQUIRES(mutex_);

  const Settings settings_;
  const Ports ports_;
  mutable Mutex mutex_;                            // one pool after the other
  grant::NodeUnitsPtr newest_ GUARDED_BY(mutex_);  // as it was scanned
  grant::NodeUnitsPtr node_ GUARDED_BY(mutex_);    // the same, numbered with lnc_
  std::optional<int> lnc_ GUARDED_BY(mutex_);
  std::optional<int> waiting_lnc_ GUARDED_BY(mutex_);  // that the log says has to wait
  std::vector<std::string> held_ GUARDED_BY(mutex_);
  HealthListPtr health_ GUARDED_BY(mutex_);  // as told last; null before the first
  bool empty_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron::plugin::dra
