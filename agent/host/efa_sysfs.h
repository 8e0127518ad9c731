#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/host/fs_root.h"
#include "agent/host/machine_topology.h"
#include "agent/model/host_scan.h"

namespace neuron::host {

// Reads the EFA interfaces of one machine: PCI functions 1d0f:efa?, joined with their RDMA name by the device links of
// sys/class/infiniband and with their verbs node by ibdev (docs/reference/efa.md#verbs-nodes). The joins are kept until
// a list changes, and repeated while one of their reads fails. One thread at a time.
class EfaReader {
 public:
  // Drops the joins; call it when the PCI inventory changed.
  void forget() { is_joined_ = false; }

  // Ascending BDF; empty is normal. Problems of one interface are in its `problems`, others in `host_problems`. An
  // interface that `may_read` leaves out is listed as not_answering; without the lists of the classes
  // (ScanPart::Kind::efa_classes) the result is empty. Parts left out of a join are joined once they may be read.
  [[nodiscard]] std::vector<model::EfaInterface> read(const FsRoot& root, PciInventory& pci,
                                                      const model::MayRead& may_read,
                                                      std::vector<model::ReadProblem>& host_problems);

  // Parts that the newest read could not read, for LastSeen: efa_classes when a list or a link of the classes failed,
  // efa for an interface that was not read for want of descriptors or memory.
  [[nodiscard]] const std::vector<model::ScanPart>& unread() const { return unread_; }

 private:
  enum class P2p { unprobed, absent, present };
  struct Joined {
    model::EfaInterface fixed;  // everything but driver_bound, node_present and p2p
    std::string driver_path;
    std::string p2p_path;
    std::string node_path;  // "" without a verbs device
    P2p p2p = P2p::unprobed;
  };

  void join(const FsRoot& root, PciInventory& pci, const model::MayRead& may_read);
  static void join_one(const FsRoot& root, PciInventory& pci, const std::map<std::string, std::string>& verbs,
                       Joined& joined);
  [[nodiscard]] std::map<model::Bdf, std::string> names_by_function(const FsRoot& root);
  [[nodiscard]] std::map<std::string, std::string> verbs_by_name(const FsRoot& root, const model::MayRead& may_read);
  [[nodiscard]] model::EfaInterface read_one(const FsRoot& root, Joined& joined);
  void note_failed_join(const std::string& path, const Error& error);
  void note_unread(const model::ScanPart& part);

  bool is_joined_ = false;                  // completely
  std::vector<model::ScanPart> unread_;     // by the newest read
  std::vector<std::string> rdma_entries_;   // sys/class/infiniband
  std::vector<std::string> verbs_entries_;  // sys/class/infiniband_verbs
  std::vector<Joined> interfaces_;
  std::vector<model::ReadProblem> join_problems_;
};

}  // namespace neuron::host
