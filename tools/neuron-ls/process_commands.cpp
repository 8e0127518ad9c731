#include "tools/neuron-ls/process_commands.h"

#include <algorithm>

#include "agent/base/parse.h"
#include "agent/host/usage_processes.h"

namespace neuron::ls {
namespace {

constexpr std::size_t kMaxCommandLine = 1 << 20;  // bytes; longer ones are left unresolved
constexpr std::size_t kMaxShown = 512;            // bytes, more than any column holds

std::string command_line(const host::FsRoot& root, int pid) {
  auto text = root.read_file("proc/" + std::to_string(pid) + "/cmdline", kMaxCommandLine);
  if (!text) return "";
  std::replace(text->begin(), text->end(), '\0', ' ');
  return printable(trim(*text), kMaxShown);
}

}  // namespace

std::map<int, std::string> read_process_commands(const host::FsRoot& root, const model::HostScan& scan) {
  std::map<int, std::string> commands;
  if (!host::proc_counts_like_the_driver(root)) return commands;
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
