#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"

// Texts of a host and what stands in for failed reads: the value of the last successful one. A list or a text that
// fails with EMFILE or EIO is neither empty nor absent.
namespace neuron::host {

// The instance type of DMI, sys/devices/virtual/dmi/id/product_name, without a scan; "" when there is no such file.
// Errors: those of FsRoot::read_attribute. Any thread; blocks on a file read.
[[nodiscard]] Result<std::string> read_instance_type(const FsRoot& root);

// Texts of a host's files as last read, by path; nullopt for an absent file. Files that never were read are not in it.
using LastTexts = std::map<std::string, std::optional<std::string>>;

// Instance type and id and the versions of the drivers, and the LNC file. After a failed read, which is named in
// scan.problems, the text in `last` counts; it is updated. Sets scan.lnc_is_unread. Any thread; blocks on file reads.
void read_host_texts(const FsRoot& root, LastTexts& last, model::HostScan& scan);
void read_lnc(const FsRoot& root, LastTexts& last, model::HostScan& scan);

// Parameters of the Neuron module. Absent in some drivers, and readable by root only, which is no problem; after
// another failed read as the texts above.
void read_driver_settings(const FsRoot& root, LastTexts& last, model::HostScan& scan);

// The node's UltraServer, from files beside the devices in sys/class/neuron_device
// (docs/reference/driver.md#class-files); nullopt without ultraserver_mode. After a failed read the text in `last`
// counts, which is updated; without one, which sets `is_unread`, and for a malformed text, only that fact is missing.
// Each failure has a line in `problems` (bounded to kMaxHostProblems). Blocks on at most 8 file reads.
[[nodiscard]] std::optional<model::UltraServer> read_ultraserver(const FsRoot& root, LastTexts& last,
                                                                 std::vector<model::ReadProblem>& problems,
                                                                 bool& is_unread);
void forget_ultraserver(LastTexts& last);

// The last readings of one machine, for what a scan could not read. Shared by all scanners of the machine, as a new one
// takes over when a read of another hangs. Thread-safe.
class LastSeen {
 public:
  // One scan's parts that exist and could not be read, each with an error other than "no such file":
  //   devices, pci     the list: entries that the scan lacks are as they were
  //   efa_classes      a list or a link: names and verbs devices that the scan lacks are as they were
  //   device, efa      the whole of it, for want of descriptors or memory: it is as it was
  using Unread = std::vector<model::ScanPart>;

  // Fills the parts `unread` of `scan`, and names in HostScan::unread_lists the lists that were never read.
  void fill(model::HostScan& scan, const Unread& unread) const EXCLUDES(mutex_);

  // Stores a filled `scan`, but for devices and interfaces that are not answering and `unread`, which includes the
  // lists that were left out: these stay as they were.
  void take(const model::HostScan& scan, const Unread& unread, LastTexts texts) EXCLUDES(mutex_);

  [[nodiscard]] LastTexts texts() const EXCLUDES(mutex_);  // for the functions above

 private:
  mutable Mutex mutex_;
  model::HostScan host_ GUARDED_BY(mutex_);  // without its lists
  std::map<int, model::NeuronDevice> devices_ GUARDED_BY(mutex_);
  std::map<model::Bdf, model::EfaInterface> efas_ GUARDED_BY(mutex_);
  LastTexts texts_ GUARDED_BY(mutex_);
  bool devices_were_read_ GUARDED_BY(mutex_) = false;  // the list, once
  bool pci_was_read_ GUARDED_BY(mutex_) = false;       // likewise
  bool classes_were_read_ GUARDED_BY(mutex_) = false;  // once so far that some interface had its name, or all of them
};

}  // namespace neuron::host
