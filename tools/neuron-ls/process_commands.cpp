#include "tools/neuron-ls/process_commands.h"

#include <algorithm>
#include <string_view>

#include "agent/base/parse.h"

namespace neuron::ls {
namespace {

constexpr std::size_t kMaxCommandLine = 1 << 20;  // bytes; longer ones are left unresolved
constexpr std::size_t kMaxShown = 512;            // bytes, more than any column holds

// Inode of the first pid namespace, fixed in the kernel (include/linux/proc_ns.h, PROC_PID_INIT_INO).
constexpr std::string_view kInitPidNamespace = "pid:[4026531836]";

// A captured tree has neither and shows host pids. Pid 2 of the first namespace is always the kernel's kthreadd, which
// tells a host's proc that is mounted into a container.
bool proc_counts_like_the_driver(const host::FsRoot& root) {
  const auto name_space = root.read_link("proc/self/ns/pid");
  if (!name_space || *name_space == kInitPidNamespace) return true;
  const auto second = root.read_attribute("proc/2/comm");
  return second && *second == "kthreadd";
}

std::string command_line(const host::FsRoot& root, int pid) {
  auto text = root.read_file("proc/" + std::to_string(pid) + "/cmdline", kMaxCommandLine);
  if (!text) return "";
  std::replace(text->begin(), text->end(), '\0', ' ');
  return printable(trim(*text), kMaxShown);
}

}  // namespace

std::map<int, std::string> read_process_commands(const host::FsRoot& root, const model::HostScan& scan) {
  std::map<int, std::string> commands;
  if (!proc_counts_like_the_driver(root)) return commands;
  for (const model::NeuronDevice& device : scan.devices) {
    if (!device.processes) continue;
    for (const model::Process& process : *device.processes) {
      if (process.pid <= 0 || commands.contains(process.pid)) continue;
      commands[process.pid] = command_line(root, process.pid);
    }
  }
  std::erase_if(commands, [](const auto& entry) { return entry.second.empty(); });
  return commands;
}

}  // namespace neuron::ls
