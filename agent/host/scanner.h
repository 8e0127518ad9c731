#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/host/driver_query.h"
#include "agent/host/efa_sysfs.h"
#include "agent/host/fs_root.h"
#include "agent/host/kernel_log.h"
#include "agent/host/last_seen.h"
#include "agent/host/machine_topology.h"
#include "agent/host/neuron_sysfs.h"
#include "agent/host/proc_files.h"
#include "agent/model/host_scan.h"

namespace neuron::host {

// Whether HostScan::kernel_log is read.
enum class KernelLogUse {
  none,
  where_allowed,  // when it cannot be read, that is no problem of the host
  wanted,         // an unreadable log and lost records are problems
};

// Reads one machine repeatedly. Keeps hwloc's topology until the list of PCI functions changes, and driver answers and
// the list of a device's files until the class directory, the driver version, the device's own directory or its serial
// number changes. One thread at a time; scan() may block inside a hung driver. `root` must outlive it.
class Scanner {
 public:
  struct Options {
    // Ask hwloc for HostScan::numa_nodes and for NUMA nodes that PCI lacks. Off in neuron-ls and neuron-top.
    bool with_topology = true;
    bool with_processes = true;  // processes from driver answers
    // Users of the devices. Where the driver does not answer, with_processes reads them from proc/<pid>/fd
    // (host/proc_files.h), which means every process: for interactive tools. On a live machine each search is followed
    // by a pause of 200 times its duration.
    bool with_device_users = false;
    // dev/kmsg (host/kernel_log.h), once there are devices.
    KernelLogUse kernel_log = KernelLogUse::none;
  };
  // `last_seen`: shared with the scanners of this machine before and after this one; else its own.
  Scanner(const FsRoot& root, Options options, std::shared_ptr<LastSeen> last_seen = std::make_shared<LastSeen>())
      : root_(root), options_(options), last_seen_(std::move(last_seen)), kernel_log_(root) {}

  // A scan never fails as a whole: unreadable values are absent and named in `problems`. An existing list or text of
  // the host that cannot be read is as it was last read (LastSeen). Not completed from the catalogue (core::complete
  // does that). More than kMaxDevices devices: the first ones by index.
  //
  // Without the parts that `may_read` forbids: a device or interface left out is listed as not_answering, with its
  // facts from elsewhere; of other parts nothing is in the scan (core::keep_last_seen adds the last values).
  [[nodiscard]] model::HostScan scan(const model::MayRead& may_read = [](const auto&) { return true; });

 private:
  struct KnownDevice {
    std::optional<NeuronDeviceReader> reader;
    std::optional<DriverAnswers> answers;
    std::optional<std::string> serial;
  };

  void refresh_pci(model::HostScan& scan, const model::MayRead& may_read);
  [[nodiscard]] std::vector<int> refresh_inventory(model::HostScan& scan);
  [[nodiscard]] model::NeuronDevice read_device(int index, const model::MayRead& may_read, model::HostScan& scan);
  [[nodiscard]] model::NeuronDevice read_sysfs(int index, KnownDevice& known, std::optional<Error>& shortage);
  void find_node(model::NeuronDevice& device, std::optional<Error>& shortage) const;
  void note_shortage(int index, const Error& shortage, model::HostScan& scan);
  void ask(int index, KnownDevice& known, model::NeuronDevice& device) const;
  void locate(model::NeuronDevice& device);
  [[nodiscard]] bool is_unread(const model::ScanPart& part) const {
    return std::ranges::find(unread_, part) != unread_.end();
  }
  void add_device_users(model::HostScan& scan);
  void search_users();
  void refresh_topology();
  void find_layout(model::HostScan& scan);
  void read_kernel_log(model::HostScan& scan);
  [[nodiscard]] Result<void> take_kernel_records(const model::HostScan& scan);
  [[nodiscard]] std::set<int> find_renewed();
  static void check_neighbours(std::vector<model::NeuronDevice>& devices);

  const FsRoot& root_;
  Options options_;
  const std::shared_ptr<LastSeen> last_seen_;
  LastSeen::Unread unread_;                 // by the newest scan
  std::vector<std::string> class_entries_;  // sys/class/neuron_device
  std::string driver_version_;              // when devices_ were opened
  std::map<int, KnownDevice> devices_;
  PciInventory pci_;
  bool topology_is_due_ = false;  // the PCI inventory changed since hwloc was asked, or hwloc failed and is tried again
  int topology_failures_ = 0;     // of this inventory
  EfaReader efa_;
  std::optional<DeviceUsers> users_;         // nullopt also when unknown
  SteadyTime next_search_;                   // for users, on a live machine
  std::optional<MachineTopology> topology_;  // nullopt also when hwloc could not load it
  std::optional<model::ReadProblem> topology_problem_;
  KernelLogReader kernel_log_;
  health::KernelErrors kernel_errors_;
  std::map<int, FileId> entries_seen_;  // of devices, by index: another id means a new registration
};

}  // namespace neuron::host
