#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"

namespace neuron::host {

// The instance type as DMI has it: sys/devices/virtual/dmi/id/product_name. For those who need it before there is a
// scan. "" when it cannot be read. Any thread; blocks on a file read.
[[nodiscard]] std::string read_instance_type(const FsRoot& root);

// The small texts of a host: instance type and id, versions of the drivers, the LNC file. A text that is there and
// cannot be read is as it was last read, and `unread` gets its part. One thread at a time; blocks on file reads.
class HostTexts {
 public:
  void read(const FsRoot& root, model::HostScan& scan, std::vector<model::ScanPart>& unread);
  void read_lnc(const FsRoot& root, model::HostScan& scan, std::vector<model::ScanPart>& unread);

 private:
  static void refresh(const FsRoot& root, std::string_view path, std::string& text, model::HostScan& scan,
                      std::vector<model::ScanPart>& unread);

  // As last read; "" before, and when there is no such file.
  std::string instance_type_;
  std::string asset_tag_;
  std::string driver_version_;
  std::string efa_driver_version_;
  model::Maybe<int> lnc_;  // nullopt also when the file makes no sense
};

}  // namespace neuron::host
