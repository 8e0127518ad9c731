#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "tools/neuron-sim/load_files.h"
#include "tools/neuron-sim/load_proc.h"
#include "tools/neuron-sim/load_workload.h"

namespace neuron::sim {

// A simulated host under load: the hardware that a workload can use, and the files that show its activity. Counters
// continue from their values, as the host's driver would count: up to 2.29 the work of a core shows only once its
// process has ended. Devices that `neuron-sim set` takes away are left alone until they come back. Not thread-safe.
class LoadHost {
 public:
  // Errors: failed_precondition (no simulated host; one without devices that this program knows).
  [[nodiscard]] static Result<LoadHost> open(const std::string& dir);

  [[nodiscard]] const LoadShape& shape() const { return shape_; }
  // Whether busy time can be seen while processes run.
  [[nodiscard]] bool counts_live() const { return counts_live_; }

  // Puts one step into the files, while no `neuron-sim set` changes them. Errors: permission_denied, internal.
  [[nodiscard]] Result<void> write(const Activity& activity);
  // Writes what write() has put off: some files change every few seconds only. Errors as above.
  [[nodiscard]] Result<void> finish();

 private:
  struct Core {
    std::string folder;
    CoreActivity pending;  // growth not yet written
    CoreActivity late;     // the same for the files that may wait
    CoreActivity shown;    // memory as it was written last
    bool written = false;
  };
  struct Device {
    std::string folder;
    std::array<std::uint64_t, model::kHostMemoryKinds> host_memory{};
    std::uint64_t own_host_memory = 0;  // of the driver, beside it
    bool written = false;
    std::uint64_t raw_power_counter = 1;
  };

  LoadHost(std::string dir, LoadFiles files);
  void find_devices();
  void find_interfaces();
  void write_device(const DeviceActivity& activity);
  void write_power(Device& device, const DeviceActivity& activity);
  void write_core(const CoreActivity& activity);
  void write_memory(const std::string& folder, std::uint64_t before, std::uint64_t now, std::uint64_t own = 0);
  void count(Core& core);
  void count_late(Core& core);

  std::string dir_;
  std::unique_ptr<LoadFiles> files_;  // at one address: the two below refer to it
  LoadShape shape_;
  bool counts_live_ = false;
  double next_late_ = 0;  // seconds since the load began
  std::map<int, Device> devices_;
  std::map<std::pair<int, int>, Core> cores_;  // by device and core
  std::map<std::string, std::string> efas_;    // RDMA name to folder
  std::unique_ptr<LoadPlatform> platform_;
  std::unique_ptr<LoadProcesses> processes_;
};

}  // namespace neuron::sim
