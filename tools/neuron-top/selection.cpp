#include "tools/neuron-top/selection.h"

#include <algorithm>
#include <cctype>

namespace neuron::top {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return lower(text).find(part) != std::string::npos;
}

// "3" and "nd3" mean that device only, not 13.
bool names_device(const std::string& filter, int index) {
  return filter == std::to_string(index) || filter == "nd" + std::to_string(index);
}

bool is_device_name(const std::string& filter) {
  const std::string digits = filter.starts_with("nd") ? filter.substr(2) : filter;
  return !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

const ProcessView* chosen_process(const ViewModel& model, const ViewState& state) {
  for (const ProcessView& process : model.processes) {
    if (state.tab != 0 && process.pid == state.tab) return &process;
  }
  return nullptr;
}

bool passes(const ViewModel& model, const ViewState& state, const DeviceView& device) {
  if (const ProcessView* process = chosen_process(model, state)) {
    if (std::find(process->devices.begin(), process->devices.end(), device.index) == process->devices.end()) {
      return false;
    }
  }
  const std::string& filter = state.filter;
  if (filter.empty()) return true;
  if (is_device_name(filter)) return names_device(filter, device.index);
  if (contains(std::string(model::to_string(device.health.state)), filter) || contains(device.health.reason, filter)) {
    return true;
  }
  if (contains(pods_of_device(model, device), filter)) return true;
  return std::any_of(model.processes.begin(), model.processes.end(), [&](const ProcessView& process) {
    const bool holds = std::find(process.devices.begin(), process.devices.end(), device.index) != process.devices.end();
    return holds && (contains(process.label, filter) || contains(process.command, filter));
  });
}

// Worst first.
int rank(model::HealthState state) {
  switch (state) {
    case model::HealthState::unhealthy:
      return 0;
    case model::HealthState::degraded:
      return 1;
    case model::HealthState::unknown:
      return 2;
    case model::HealthState::healthy:
      return 3;
  }
  return 3;
}

bool before(const DeviceView& a, const DeviceView& b, Sort sort) {
  switch (sort) {
    case Sort::utilization:
      return a.percent.value_or(-1) > b.percent.value_or(-1);
    case Sort::memory:
      return a.device_bytes.value_or(0) > b.device_bytes.value_or(0);
    case Sort::health:
      return rank(a.health.state) < rank(b.health.state);
    case Sort::index:
      break;
  }
  return a.index < b.index;
}

bool before(const EfaView& a, const EfaView& b, Sort sort) {
  const auto traffic = [](const EfaView& efa) { return efa.rx.value_or(-1) + efa.tx.value_or(-1); };
  if (sort == Sort::utilization || sort == Sort::memory) return traffic(a) > traffic(b);
  if (sort == Sort::health) return rank(a.health.state) < rank(b.health.state);
  return false;
}

bool before(const ProcessView& a, const ProcessView& b, Sort sort) {
  const auto cpu = [](const ProcessView& p) { return p.user_percent.value_or(-1) + p.system_percent.value_or(0); };
  if (sort == Sort::utilization) return cpu(a) > cpu(b);
  if (sort == Sort::memory) return a.device_bytes > b.device_bytes;
  return a.pid < b.pid;
}

template <typename T>
void sort_by(std::vector<const T*>& rows, Sort sort) {
  std::stable_sort(rows.begin(), rows.end(), [sort](const T* a, const T* b) { return before(*a, *b, sort); });
}

}  // namespace

std::vector<const DeviceView*> shown_devices(const ViewModel& model, const ViewState& state) {
  std::vector<const DeviceView*> shown;
  for (const DeviceView& device : model.devices) {
    if (passes(model, state, device)) shown.push_back(&device);
  }
  sort_by(shown, state.sort);
  return shown;
}

std::vector<const EfaView*> shown_efas(const ViewModel& model, const ViewState& state) {
  std::vector<const EfaView*> shown;
  for (const EfaView& efa : model.efas) {
    const bool passes = state.filter.empty() || contains(efa.name, state.filter) ||
                        contains(std::string(model::to_string(efa.health.state)), state.filter) ||
                        contains(pods_of_efa(model, efa.name), state.filter);
    if (passes) shown.push_back(&efa);
  }
  sort_by(shown, state.sort);
  return shown;
}

std::vector<const ProcessView*> shown_processes(const ViewModel& model, const ViewState& state) {
  std::vector<const ProcessView*> shown;
  for (const ProcessView& process : model.processes) {
    if (state.tab != 0 && chosen_process(model, state) != nullptr && process.pid != state.tab) continue;
    const bool passes =
        state.filter.empty() || contains(process.label, state.filter) || contains(process.command, state.filter) ||
        contains(std::to_string(process.pid), state.filter) || contains(pods_of_process(model, process), state.filter);
    if (passes) shown.push_back(&process);
  }
  sort_by(shown, state.sort);
  return shown;
}

std::string_view to_string(Sort sort) {
  switch (sort) {
    case Sort::index:
      return "index";
    case Sort::utilization:
      return "utilization";
    case Sort::memory:
      return "memory";
    case Sort::health:
      return "health";
  }
  return "";
}

}  // namespace neuron::top
