#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "tools/neuron-sim/load_workload.h"

// A simulated host under load, and the files that show it.
namespace neuron::sim {

// Changes files of a simulated host while others read them: a new text appears atomically (rename), with the
// mode of the old one. Anything but a plain file, or text in place of a number, comes from `neuron-sim set` and stays
// as it is; absent files stay absent. Paths are relative to the host's directory.
//
// After the first failure (no space, no rights) every further call does nothing; state() holds that failure.
// Not thread-safe.
class LoadFiles {
 public:
  // Errors: failed_precondition (`dir` is no simulated host), not_found, permission_denied.
  [[nodiscard]] static Result<LoadFiles> open(const std::string& dir);

  // The text of a plain file of at most 64 KiB; nullopt for anything else.
  [[nodiscard]] std::optional<std::string> read(const std::string& path) const;

  // Puts `text` in the place of a plain file.
  void replace(const std::string& path, std::string_view text);
  // Creates a plain file where there is nothing yet; its folder must exist.
  void create(const std::string& path, std::string_view text, mode_t mode = 0444);
  // Adds to a counter; the text must be one decimal number. Nothing happens for growth 0.
  void add(const std::string& path, std::uint64_t growth);
  // Replaces one decimal number by another.
  void set(const std::string& path, std::uint64_t value);

  void make_folder(const std::string& path);  // fine if it is there
  void make_link(const std::string& path, const std::string& target);
  void move(const std::string& from, const std::string& to);  // fine if `from` is gone
  void remove_folder(const std::string& path);                // recursively; fine if it is gone

  [[nodiscard]] const Result<void>& state() const { return state_; }

 private:
  LoadFiles(std::string dir, Fd handle) : dir_(std::move(dir)), handle_(std::move(handle)) {}
  struct Plain {
    std::string text;
    mode_t mode = 0;
  };
  [[nodiscard]] std::optional<Plain> read_plain(const std::string& path) const;
  void write(const std::string& path, std::string_view text, mode_t mode);
  void change(const std::string& path, const std::function<std::uint64_t(std::uint64_t)>& changed);
  void note(int os_errno, const std::string& path);

  std::string dir_;
  Fd handle_;
  Result<void> state_;
};

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

// The text of proc/meminfo with memory in use replaced; other lines stay. Pure.
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

// proc/<pid>/stat and statm. Pure.
[[nodiscard]] std::string process_stat(const ProcessActivity& process, std::uint64_t first_tick);
[[nodiscard]] std::string process_statm(const ProcessActivity& process);

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
