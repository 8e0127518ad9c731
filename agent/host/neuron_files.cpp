#include "agent/host/neuron_files.h"

#include "agent/host/attributes.h"

namespace neuron::host {
namespace {

using health::SignalKind;

Result<std::uint64_t> parse_as(SignalKind kind, std::string_view text) {
  if (kind == SignalKind::ecc) return parse_ecc_count(text);
  if (kind == SignalKind::hbm) return parse_hbm_count(text);
  if (kind == SignalKind::heartbeat) return parse_heartbeat(text);
  return parse_counter(text);
}

bool is_health_file(SignalKind kind) {
  return kind == SignalKind::health || kind == SignalKind::heartbeat || kind == SignalKind::components;
}

}  // namespace

Result<void> store_signal(const health::DeviceSignal& signal, std::string_view text, model::DeviceSignals& signals) {
  if (is_health_file(signal.kind)) {
    if (says_unreachable(text)) {
      signals.unreachable = true;
      return {};
    }
    // Only the files that can say so prove the opposite.
    if (signal.kind != SignalKind::health && !signals.unreachable) signals.unreachable = false;
  }
  if (signal.kind == SignalKind::components) {
    TRY_ASSIGN(signals.unhealthy_components, parse_components(text));
    return {};
  }
  if (signal.kind == SignalKind::reset) {
    TRY_ASSIGN(signals.reset_state, parse_reset_state(text));
    return {};
  }
  TRY_ASSIGN(signals.*signal.value, parse_as(signal.kind, text));
  return {};
}

}  // namespace neuron::host
