#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/neuron-sim/load_files.h"
#include "tools/neuron-sim/load_workload.h"

namespace neuron::sim {

// proc/stat and proc/meminfo of a simulated host under load: time and memory of the whole machine. A host that was just
// made has no proc/stat; it then seems to have been up for an hour. Not thread-safe.
class LoadPlatform {
 public:
  LoadPlatform(LoadFiles& files, int cpus);  // `files` must outlive it

  [[nodiscard]] std::uint64_t uptime_ticks() const;  // of one CPU
  void write(const Activity& activity);

 private:
  LoadFiles& files_;
  int cpus_ = 1;
  std::uint64_t user_ticks_ = 0;  // of all CPUs since boot, as the others
  std::uint64_t system_ticks_ = 0;
  std::uint64_t idle_ticks_ = 0;
};

// The text of proc/meminfo with memory in use replaced; other lines stay. Pure; exposed for tests.
[[nodiscard]] std::string with_memory_used(const std::string& meminfo, std::uint64_t used_bytes);

// The processes of a load as a simulated host shows them: proc/<pid>/{cmdline,comm,environ,stat,statm,fd,fdinfo} and
// the driver's recorded answers; and an empty proc/1/fd, which means that no process is hidden (host/proc_files.h). A
// process appears and goes as a whole. The processes of an earlier load, recorded in .neuron-sim/load-processes, are
// removed at the first step. Not thread-safe.
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
