#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

namespace neuron::host {

// Reads requested counters of a machine's use repeatedly, through directory handles that stay open, one per device and
// per EFA interface, until it registers again. Never attaches to a device and never opens a Neuron datastore
// (docs/adr/0005-no-datastore.md). One thread at a time; may block inside a hung driver. `root` must outlive it.
class UsageReader {
 public:
  explicit UsageReader(const FsRoot& root) : root_(root) {}

  // One sample of the devices, cores, interfaces and processes of `scan` (host::Scanner, best completed). It may be
  // older than the sample: values of what has left since are empty. `now` is stored as the sample's time. Never fails:
  // unreadable values are empty, impossible amounts of memory as well (core/complete.h), and a file that would block
  // costs one attempt. Without the parts that `may_read` forbids: a device or interface that is left out, or not
  // present in the scan, has only its name.
  [[nodiscard]] model::UsageSample read(const model::HostScan& scan, const model::UsageRequest& request,
                                        SteadyTime now = std::chrono::steady_clock::now()) {
    return read(
        scan, request, [](const auto&) { return true; }, now);
  }
  [[nodiscard]] model::UsageSample read(const model::HostScan& scan, const model::UsageRequest& request,
                                        const model::MayRead& may_read,
                                        SteadyTime now = std::chrono::steady_clock::now());

 private:
  // A directory that stays open while its entry leads to it.
  struct Kept {
    std::optional<FsRoot> directory;
    FileId id;
  };
  enum class Counters { live, stale };
  struct KeptEfa {
    Kept device;
    // Name to path below the directory; nullopt while the list could not be read.
    std::optional<std::map<std::string, std::string>> own;   // counters of the device
    std::optional<std::map<std::string, std::string>> port;  // of its port: each read is a command to the device
  };

  enum class Opened { nothing, same, anew };
  [[nodiscard]] Opened open(Kept& kept, const std::string& path) const;
  void forget_others(const model::HostScan& scan);
  [[nodiscard]] model::DeviceUsage read_device(const model::NeuronDevice& device, const model::UsageRequest& request,
                                               Counters counters);
  [[nodiscard]] model::EfaUsage read_efa(const std::string& name, const model::UsageRequest& request);
  void read_platform(model::UsageSample& sample) const;
  void read_processes(const model::HostScan& scan, const model::MayRead& may_read, model::UsageSample& sample);

  const FsRoot& root_;
  std::map<int, Kept> devices_;
  std::map<std::string, KeptEfa> efas_;
  std::optional<bool> proc_counts_like_driver_;  // asked once
};

}  // namespace neuron::host
