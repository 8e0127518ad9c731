#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "agent/core/complete.h"
#include "agent/core/hardware.h"
#include "agent/grant/grant.h"
#include "agent/holdings/holding.h"
#include "agent/model/snapshot.h"

namespace neuron::plugin {

// The newest snapshot as answers and lists of either mode read it. Ids of held cores mean hardware only with the LNC
// they were given under, so cores keep their numbers while they are held, whatever LNC the node is set to. Held
// hardware that no scan has shown is in it as vanished (agent/health/assess.h). Not synchronised: its owner locks.
class NodeView {
 public:
  void set_newest(grant::NodeUnitsPtr scan);                                   // never null
  [[nodiscard]] const grant::NodeUnitsPtr& newest() const { return newest_; }  // as scanned; nullptr before the first
  [[nodiscard]] const grant::NodeUnitsPtr& node() const { return node_; }      // as read; nullptr before the first
  [[nodiscard]] std::optional<int> scanned_lnc() const;                        // of newest()

  // Another scan of this node, read as node() is; the scan itself where nothing differs. nullptr stays nullptr.
  [[nodiscard]] model::SnapshotPtr read(model::SnapshotPtr scan) const;
  [[nodiscard]] grant::NodeUnitsPtr read(grant::NodeUnitsPtr scan) const;

  // The LNC that ids are read with; nullopt: that of each scan.
  [[nodiscard]] std::optional<int> lnc() const { return lnc_; }
  void set_lnc(std::optional<int> lnc);
  // set_lnc() that logs, once each, a change of the numbering and a change of the node's LNC that has to wait because
  // `holders` ("claims") `hold` ("claims hold devices").
  void follow_lnc(std::optional<int> lnc, std::string_view holders, std::string_view hold);
  void forget_deferred() { deferred_lnc_.reset(); }  // the next deferral is logged even if it is the same

  // Held hardware that newest() may lack: an index, an RDMA name. True: it was unknown and is in node() from now on.
  bool add_held_device(int index);
  bool add_held_efa(std::string_view name);

 private:
  [[nodiscard]] bool reads_as_scanned(const model::Snapshot& scan) const;

  grant::NodeUnitsPtr newest_;
  grant::NodeUnitsPtr node_;
  core::SeenBefore held_;  // that no scan has shown
  std::optional<int> lnc_;
  std::optional<int> deferred_lnc_;  // of the newest snapshot, as logged
};

// The holder's share of the node: one holding of its devices and cores, as holder.resource, and one of its interfaces;
// each only where there is some.
[[nodiscard]] std::vector<holdings::Holding> holdings_of(const grant::NodeUnits& node, const core::Hardware& hardware,
                                                         const holdings::Holding& holder);

}  // namespace neuron::plugin
