#include "plugin/daemon/machine_scans.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "agent/health/assess.h"
#include "agent/host/neuron_sysfs.h"
#include "plugin/daemon/inventory_log.h"

namespace neuron::plugin {
namespace {

model::SnapshotPtr assessed(model::HostScan scan) {
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = snapshot->generation = 1;
  health::AssessMemory memory;
  snapshot->host = health::assess(std::move(scan), memory, std::chrono::steady_clock::now()).host;
  return snapshot;
}

}  // namespace

monitor::WatchedScan::MakeScan scan_maker(const RootPtr& root, const std::shared_ptr<ScanTimer>& timer,
                                          host::KernelLogUse kernel_log) {
  struct Machine {
    RootPtr root;
    host::Scanner scanner;
    Machine(RootPtr opened, host::KernelLogUse use, std::shared_ptr<host::LastSeen> last)
        : root(std::move(opened)), scanner(*root, {.kernel_log = use}, std::move(last)) {}
  };
  return [root, timer, kernel_log, last = std::make_shared<host::LastSeen>()] {
    return [machine = std::make_shared<Machine>(root, kernel_log, last), timer](const model::MayRead& may_read) {
      const auto begun = std::chrono::steady_clock::now();
      model::HostScan scan = machine->scanner.scan(may_read);
      timer->note(std::chrono::steady_clock::now() - begun);
      return scan;
    };
  };
}

model::SnapshotPtr scan_now(const host::FsRoot& root, host::KernelLogUse kernel_log) {
  host::Scanner scanner(root, {.kernel_log = kernel_log});
  return assessed(scanner.scan());
}

Result<model::SnapshotPtr> scan_once(const std::string& root, host::KernelLogUse kernel_log, Workers& workers) {
  TRY_ASSIGN(auto opened, host::FsRoot::open(root));
  const RootPtr machine = std::make_shared<const host::FsRoot>(std::move(opened));
  monitor::BoundedScans scans(workers, scan_maker(machine, std::make_shared<ScanTimer>(), kernel_log));
  const auto snapshot = assessed(scans.scan());
  for (const model::Unanswered& one : snapshot->host.unanswered) {
    spdlog::warn("scan incomplete, values left out: {} has not returned since {}", to_string(one.part), one.since);
  }
  log_missing(snapshot->host);
  log_problems(snapshot->host);
  return snapshot;
}

std::optional<std::uint64_t> memory_in_use(const host::FsRoot& root, const grant::NodeUnitsPtr& node, int device,
                                           int core) {
  const model::NeuronDevice* known = node ? node->device(device) : nullptr;
  return host::process_memory_of_core(root, device, core, known != nullptr ? known->memory_bytes : std::nullopt);
}

}  // namespace neuron::plugin
