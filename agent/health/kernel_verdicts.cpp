#include "agent/health/kernel_verdicts.h"

#include <chrono>
#include <string>
#include <utility>

#include "agent/health/kernel_errors.h"
#include "agent/health/reasons.h"

namespace neuron::health {
namespace {

using model::Health;
using model::KernelErrorKind;
using model::KernelLogError;

const Reason& reason_of(const KernelLogError& error) {
  switch (error.kind) {
    case KernelErrorKind::sram:
      return reasons::kSramEccUncorrected;
    case KernelErrorKind::core:
      return reasons::kHwNcUeError;
    case KernelErrorKind::hbm:
      return reasons::kMemEccUncorrected;
    case KernelErrorKind::hbm_repairable:
      return reasons::kMemEccRepairable;
    case KernelErrorKind::dma:
      return reasons::kHwDmaAbortError;
    case KernelErrorKind::collectives:
      return reasons::kHangOnCollectives;
    case KernelErrorKind::other:
      break;
  }
  return error.action == kTerminateInstance ? reasons::kHwError : reasons::kKernelLogError;
}

Health verdict_of(const KernelLogError& error, const std::string& name) {
  std::string sentence = name + ": the kernel log reports NEURON_HW_ERR=" + error.name;
  if (error.core) sentence += " of core " + std::to_string(*error.core);
  if (!error.device) sentence += " and names no device";
  if (!error.action.empty()) sentence += " (action=" + error.action + ")";
  return verdict(reason_of(error), std::move(sentence));
}

bool is_over(const KernelLogError& error, SteadyTime now) {
  return error.kind == KernelErrorKind::collectives && now.time_since_epoch() > error.last_at + kHangHolds;
}

// An error by nc-id is the core's only where logical and physical cores are the same: which of the two nc-id counts is
// unknown.
bool is_of_core(const KernelLogError& error, const model::HostScan& scan, const model::NeuronDevice& device) {
  return error.kind == KernelErrorKind::core && error.core && scan.lnc && scan.lnc->value == 1 &&
         device.physical_cores && *error.core < device.physical_cores->value;
}

}  // namespace

KernelFaults find_kernel_faults(const model::HostScan& scan, const model::NeuronDevice& device, SteadyTime now) {
  KernelFaults faults{healthy(), {}};
  for (const KernelLogError& error : scan.kernel_log.errors) {
    if (error.device != device.index || !is_of_chip(error.serial, device) || is_over(error, now)) continue;
    Health health = verdict_of(error, "neuron" + std::to_string(device.index));
    if (is_of_core(error, scan, device)) {
      faults.of_cores.try_emplace(*error.core, std::move(health));
    } else {
      keep_graver(faults.of_device, std::move(health));
    }
  }
  return faults;
}

Health verdict_on_node(const model::HostScan& scan, SteadyTime now) {
  Health worst = scan.kernel_log.state == model::KernelLogState::reading ? healthy() : Health{};
  for (const KernelLogError& error : scan.kernel_log.errors) {
    if (error.device || is_over(error, now)) continue;
    keep_graver(worst, verdict_of(error, "node"));
  }
  return worst;
}

}  // namespace neuron::health
