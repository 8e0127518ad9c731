#include "tools/neuron-top/news.h"

#include <fmt/format.h>

#include <string>

#include "tools/neuron-top/cores_section.h"
#include "tools/neuron-top/format.h"

namespace neuron::top {
namespace {

struct Entry {
  std::string text;
  Role role = Role::plain;
  int most_lines = 2;
};

struct Worst {
  std::string name;
  const model::Health* health = nullptr;  // null: all is well
  int others = 0;
};

Worst worst_of(const ViewModel& model) {
  Worst worst;
  int count = 0;
  const auto consider = [&](const std::string& name, const model::Health& health) {
    if (model::badness(health.state) == 0) return;
    ++count;
    if (worst.health != nullptr && model::badness(health.state) <= model::badness(worst.health->state)) return;
    worst.name = name;
    worst.health = &health;
  };
  for (const DeviceView& device : model.devices) consider(fmt::format("ND{}", device.index), device.health);
  for (const EfaView& efa : model.efas) consider(efa.name, efa.health);
  worst.others = std::max(count - 1, 0);
  return worst;
}

void add_worst(std::vector<Entry>& entries, const Worst& worst) {
  const model::Health& health = *worst.health;
  const bool unknown = health.state == model::HealthState::unknown;
  const Role role = unknown ? Role::warning : role_of(health.state);
  std::string text = unknown ? fmt::format("health of {} is unknown", worst.name)
                             : fmt::format("{} is {}", worst.name, model::to_string(health.state));
  if (worst.others > 0) text += fmt::format(" (+{} more: c, e)", worst.others);
  if (!health.sentence.empty()) text += ": " + health.sentence;
  entries.push_back({std::move(text), role});
  if (!health.action.empty()) entries.push_back({"  what to do: " + health.action, role});
}

std::vector<TableCell> lines_of(const std::vector<Entry>& entries, int columns) {
  std::vector<TableCell> lines;
  for (const Entry& entry : entries) {
    for (std::string& line : wrapped(entry.text, columns, entry.most_lines)) {
      lines.push_back({std::move(line), entry.role});
    }
  }
  return lines;
}

}  // namespace

std::vector<TableCell> news(const Scene& scene, int columns, int most) {
  const ViewModel& model = scene.model;
  std::vector<Entry> entries;
  const Worst worst = worst_of(model);
  if (worst.health != nullptr) add_worst(entries, worst);
  const int missing = model.expected_devices - static_cast<int>(model.devices.size());
  if (missing > 0 && !model.devices.empty()) {
    entries.push_back(
        {fmt::format("{} of the {} devices of this instance type are missing", missing, model.expected_devices),
         Role::bad});
    if (worst.health == nullptr) {
      entries.push_back(
          {"  what to do: dmesg | grep -i neuron; stop and start the instance if they do not come back", Role::bad});
    }
  }
  if (auto reason = unsaid_reason(scene, columns); !reason.empty()) {
    entries.push_back({std::move(reason), Role::warning});
  }
  std::vector<TableCell> lines = lines_of(entries, columns);
  for (auto entry = entries.rbegin(); entry != entries.rend() && static_cast<int>(lines.size()) > most; ++entry) {
    entry->most_lines = 1;  // the last ones give way first
    lines = lines_of(entries, columns);
  }
  if (static_cast<int>(lines.size()) > most) lines.resize(static_cast<std::size_t>(most));
  return lines;
}

}  // namespace neuron::top
