#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "agent/metrics/families_parts.h"

namespace neuron::metrics {
namespace {

using model::KernelErrorKind;
using model::KernelLogState;

std::string_view name_of(KernelErrorKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"sram", "core",        "hbm",  "hbm_repairable",
                                                      "dma",  "collectives", "other"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string text_of(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "";
}

}  // namespace

void add_kernel_log(const Scrape& scrape, FamilySet& families) {
  const model::KernelLog& log = scrape.host.kernel_log;
  if (log.state == KernelLogState::off) return;
  families["neuron_kernel_log_reading"].add({}, log.state == KernelLogState::reading ? 1 : 0);
  families["neuron_kernel_log_lost_records_total"].add({}, static_cast<double>(log.lost_records));
  families["neuron_kernel_log_ignored_lines_total"].add({}, static_cast<double>(log.ignored_lines));
  add_health(log.node_health, {}, families["neuron_kernel_log_healthy"], families["neuron_kernel_log_health_info"]);
  for (const model::KernelLogError& error : log.errors) {
    const Labels place{{"neuron_device_index", text_of(error.device)},
                       {"physical_core", text_of(error.core)},
                       {"kind", std::string(name_of(error.kind))}};
    const Labels labels = with(place, scrape.holders.of_device(error.device.value_or(-1)));
    families["neuron_kernel_log_errors_total"].add(labels, static_cast<double>(error.lines));
  }
}

}  // namespace neuron::metrics
