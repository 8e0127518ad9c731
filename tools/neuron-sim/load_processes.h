#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/neuron-sim/load_activity.h"
#include "tools/neuron-sim/load_files.h"

namespace neuron::sim {

// The processes of a load as a simulated host shows them: proc/<pid>/{cmdline,comm,environ,stat,statm,fd,fdinfo} and
// the driver's recorded answers; beside them an empty proc/1/fd, which says that nobody is hidden
// (host/device_users.h). A process appears and goes as a whole. What an earlier load left behind is removed at the
// first step; .neuron-sim/load-processes remembers it. Not thread-safe.
class LoadProcesses {
 public:
  // `files` must outlive it; `first_tick` is when the load begins, since the host's boot.
  LoadProcesses(LoadFiles& files, std::uint64_t first_tick) : files_(files), first_tick_(first_tick) {}

  void write(const Activity& activity);

 private:
  void forget_earlier_load();
  void appear(const ProcessActivity& process);
  void go(int pid);
  void remember();
  void write_answers(const DeviceActivity& device);

  LoadFiles& files_;
  bool began_ = false;
  std::uint64_t first_tick_ = 0;
  std::map<int, ProcessActivity> shown_;               // below proc/
  std::map<int, std::vector<ProcessShare>> answered_;  // by device
};

// proc/<pid>/stat and statm. Pure; exposed for tests.
[[nodiscard]] std::string process_stat(const ProcessActivity& process, std::uint64_t first_tick);
[[nodiscard]] std::string process_statm(const ProcessActivity& process);

}  // namespace neuron::sim
