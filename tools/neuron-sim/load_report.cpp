#include "tools/neuron-sim/load_report.h"

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <set>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

constexpr double kSummarySeconds = 5;

std::string counted(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string name_of(const ProcessActivity& process) {
  const std::string& program = process.arguments.front();
  const std::string name = process.tag.empty() ? program.substr(program.rfind('/') + 1) : process.tag;
  return std::to_string(process.pid) + " " + name + " on neuron " + format_int_list(process.devices);
}

}  // namespace

void LoadReport::begin(const std::string& directory, const LoadShape& shape, bool counts_live) {
  std::size_t cores = 0;
  for (const LoadDevice& device : shape.devices) cores += device.cores.size();
  out_ << "playing on " << directory << ": " << counted(shape.devices.size(), "device", "devices") << ", "
       << counted(cores, "core", "cores") << ", " << counted(shape.efas.size(), "EFA interface", "EFA interfaces")
       << "\n";
  if (!counts_live) out_ << "this driver counts busy time only when a process ends (live from 2.30.2)\n";
  out_.flush();
}

void LoadReport::note_processes(const Activity& activity) {
  std::set<int> alive;
  char time[32];
  std::snprintf(time, sizeof time, "%6.1f s  ", activity.seconds);
  for (const ProcessActivity& process : activity.processes) {
    alive.insert(process.pid);
    const auto [at, is_new] = processes_.emplace(process.pid, name_of(process));
    if (is_new) out_ << time << "begins: " << at->second << "\n";
  }
  std::erase_if(processes_, [&](const auto& entry) {
    if (alive.contains(entry.first)) return false;
    out_ << time << "ends:   " << entry.second << "\n";
    return true;
  });
  out_.flush();
}

void LoadReport::note(const Activity& activity, double step_seconds) {
  note_processes(activity);
  since_summary_ += step_seconds;
  for (const CoreActivity& core : activity.cores) busy_ += static_cast<double>(core.busy_us) * 1e-6;
  for (const EfaActivity& efa : activity.efas) {
    const auto sent = efa.growth.find("ports/1/hw_counters/tx_bytes");
    if (sent != efa.growth.end()) sent_bytes_ += static_cast<double>(sent->second);
  }
  if (activity.seconds >= next_summary_) summarise(activity);
}

void LoadReport::summarise(const Activity& activity) {
  if (since_summary_ <= 0) return;
  const auto busy_devices = std::count_if(activity.devices.begin(), activity.devices.end(),
                                          [](const DeviceActivity& device) { return !device.processes.empty(); });
  const double percent =
      100 * busy_ / since_summary_ / static_cast<double>(std::max<std::size_t>(1, activity.cores.size()));
  char text[160];
  std::snprintf(text, sizeof text,
                "%6.1f s  %zu processes on %td of %zu devices; cores %.0f %% busy; EFA sends %.1f GB/s\n",
                activity.seconds, activity.processes.size(), busy_devices, activity.devices.size(), percent,
                sent_bytes_ / since_summary_ * 1e-9);
  out_ << text;
  out_.flush();
  next_summary_ = activity.seconds + kSummarySeconds;
  since_summary_ = busy_ = sent_bytes_ = 0;
}

void LoadReport::end(const Activity& activity) {
  summarise(activity);
  out_ << "left unchanged: " << counted(activity.processes.size(), "process", "processes")
       << " still listed, counters stopped\n";
  out_.flush();
}

}  // namespace neuron::sim
