#pragma once

#include <cstdint>
#include <string>

#include "tools/neuron-sim/load_activity.h"
#include "tools/neuron-sim/load_files.h"

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

}  // namespace neuron::sim
