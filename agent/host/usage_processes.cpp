#include "agent/host/usage_processes.h"

#include <unistd.h>

#include <set>
#include <string>
#include <string_view>

#include "agent/host/usage_texts.h"

namespace neuron::host {
namespace {

constexpr std::size_t kMaxProcessFile = std::size_t{256} << 10U;

// Inode of the first pid namespace, fixed in the kernel (include/linux/proc_ns.h, PROC_PID_INIT_INO).
constexpr std::string_view kInitPidNamespace = "pid:[4026531836]";

// Unknown for a captured host; all types with Neuron devices so far have pages of 4 KiB.
std::uint64_t page_bytes(const FsRoot& root) {
  constexpr long kUsual = 4096;
  const long live = root.is_live() ? ::sysconf(_SC_PAGESIZE) : kUsual;
  return static_cast<std::uint64_t>(live > 0 ? live : kUsual);
}

}  // namespace

bool proc_counts_like_the_driver(const FsRoot& root) {
  const auto name_space = root.read_link("proc/self/ns/pid");
  if (!name_space || *name_space == kInitPidNamespace) return true;
  // Pid 2 of the first namespace is always the kernel's kthreadd, which shows a host's proc mounted into a container.
  const auto second = root.read_attribute("proc/2/comm");
  return second && *second == "kthreadd";
}

model::ProcessUsage read_process(const FsRoot& root, int pid) {
  model::ProcessUsage process;
  process.pid = pid;
  const auto folder = root.subdirectory("proc/" + std::to_string(pid));
  if (!folder) return process;
  if (const auto text = folder->read_file("cmdline", kMaxProcessFile)) process.command = parse_command(*text);
  if (const auto text = folder->read_file("environ", kMaxProcessFile)) process.tag = parse_tag(*text);
  if (const auto text = folder->read_attribute("stat")) {
    if (const auto times = parse_process_times(*text)) {
      process.user_ticks = times->user_ticks;
      process.system_ticks = times->system_ticks;
      process.start_ticks = times->start_ticks;
    }
  }
  if (const auto text = folder->read_attribute("statm")) {
    process.resident_bytes = parse_resident(*text, page_bytes(root));
  }
  return process;
}

std::vector<int> process_ids(const model::HostScan& scan) {
  std::set<int> ids;
  for (const model::NeuronDevice& device : scan.devices) {
    if (!device.processes) continue;
    for (const model::Process& process : *device.processes) {
      if (process.pid > 0 && ids.size() < kMaxProcesses) ids.insert(process.pid);
    }
  }
  return {ids.begin(), ids.end()};
}

}  // namespace neuron::host
