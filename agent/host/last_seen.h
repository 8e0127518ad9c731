#pragma once

#include <map>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/host/ultraserver.h"
#include "agent/model/host_scan.h"

namespace neuron::host {

// The last values read from one machine, for parts that a scan could not read: a list that fails with EMFILE or EIO is
// no empty list. Shared by all scanners of a machine, as a new one takes over when a read of another hangs.
// Thread-safe.
class LastSeen {
 public:
  // One scan's parts that are there and could not be read, each with an error other than "no such file":
  //   host             some text: those that the scan lacks are as they were
  //   devices, pci     the list: what the scan lacks of it is as it was
  //   efa_classes      a list or a link: names and verbs devices that the scan lacks are as they were
  //   device, efa      the whole of it, for want of descriptors or memory: it is as it was
  using Unread = std::vector<model::ScanPart>;

  // Puts into `scan` what is known of `unread`, and names in HostScan::unread_lists the lists that were never read.
  void fill(model::HostScan& scan, const Unread& unread) const EXCLUDES(mutex_);

  // Takes over what `scan`, filled, has read. Units that are not_answering stay as they were, as do `unread` and lists
  // that were left out, which are in it too.
  void take(const model::HostScan& scan, const Unread& unread, UltraServerTexts texts) EXCLUDES(mutex_);

  // For read_ultraserver(), which goes on from them.
  [[nodiscard]] UltraServerTexts ultraserver_texts() const EXCLUDES(mutex_);

 private:
  [[nodiscard]] bool was_read(model::ScanPart::Kind list) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  model::HostScan host_ GUARDED_BY(mutex_);  // without its lists
  std::map<int, model::NeuronDevice> devices_ GUARDED_BY(mutex_);
  std::map<model::Bdf, model::EfaInterface> efas_ GUARDED_BY(mutex_);
  UltraServerTexts ultraserver_texts_ GUARDED_BY(mutex_);
  bool devices_were_read_ GUARDED_BY(mutex_) = false;  // the list, once
  bool pci_was_read_ GUARDED_BY(mutex_) = false;       // likewise
  bool classes_were_read_ GUARDED_BY(mutex_) = false;  // once so far that some interface had its name, or all of them
};

}  // namespace neuron::host
