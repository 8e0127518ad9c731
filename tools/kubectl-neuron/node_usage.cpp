#include "tools/kubectl-neuron/node_usage.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "agent/base/parse.h"

namespace neuron::fleet {
namespace {

constexpr int kMostUnits = 4096;  // highest number of a core or device
constexpr std::size_t kMostInterfaces = 256;

struct Sample {
  std::string_view name;
  std::string_view unit;  // value of the family's first label
  std::string_view kind;  // of the second
  std::string_view number;
  double value = 0;
};

// One kind of line that is read: which labels, and where the value goes.
struct Family {
  std::string_view name;
  std::string_view unit_label;
  std::string_view kind_label;
  void (*store)(NodeUsage& usage, const Sample& sample);
};

std::optional<std::uint64_t> whole(double value) {
  constexpr double kMost = 9e18;
  if (value < 0 || value > kMost) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::optional<double> percent(double ratio) {
  constexpr double kSlack = 1.05;
  if (ratio < 0 || ratio > kSlack) return std::nullopt;
  return std::min(100 * ratio, 100.0);
}

CoreUse* core_of(NodeUsage& usage, const Sample& sample) {
  const auto id = parse_int(sample.unit, 0, kMostUnits);
  return id ? &usage.cores[*id] : nullptr;
}

DeviceUse* device_of(NodeUsage& usage, const Sample& sample) {
  const auto index = parse_int(sample.unit, 0, kMostUnits);
  return index ? &usage.devices[*index] : nullptr;
}

template <model::DeviceMemoryKind Kind>
void store_kind(NodeUsage& usage, const Sample& sample) {
  if (CoreUse* core = core_of(usage, sample)) core->kinds[static_cast<std::size_t>(Kind)] = whole(sample.value);
}

void store_core_memory(NodeUsage& usage, const Sample& sample) {
  CoreUse* core = core_of(usage, sample);
  if (core == nullptr) return;
  if (sample.kind == "neuron_device") core->device_bytes = whole(sample.value);
  if (sample.kind == "host") core->host_bytes = whole(sample.value);
}

void store_host_memory(NodeUsage& usage, const Sample& sample) {
  DeviceUse* device = device_of(usage, sample);
  for (std::size_t i = 0; device != nullptr && i < model::kHostMemoryKinds; ++i) {
    const auto kind = static_cast<model::HostMemoryKind>(i);
    if (to_string(kind) == sample.kind) device->host_memory[i] = whole(sample.value);
  }
}

void store_power(NodeUsage& usage, const Sample& sample) {
  DeviceUse* device = device_of(usage, sample);
  const auto value = percent(sample.value);
  if (device == nullptr || !value) return;
  if (!device->power) device->power.emplace();
  if (sample.kind == "min") device->power->min_percent = *value;
  if (sample.kind == "max") device->power->max_percent = *value;
  if (sample.kind == "avg") device->power->average_percent = *value;
}

void store_ecc(NodeUsage& usage, const Sample& sample) {
  constexpr std::array<std::string_view, 4> kTypes = {"mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_corrected",
                                                      "sram_ecc_uncorrected"};
  DeviceUse* device = device_of(usage, sample);
  const auto count = whole(sample.value);
  const bool known = std::ranges::find(kTypes, sample.kind) != kTypes.end();
  if (device != nullptr && count && known) device->ecc[std::string(sample.kind)] = *count;
}

constexpr std::string_view kEfaPrefix = "node_amazonefa_";

void store_efa(NodeUsage& usage, const Sample& sample) {
  if (sample.unit.empty() || sample.value < 0) return;
  const std::string name(sample.unit);
  if (usage.efas.size() >= kMostInterfaces && !usage.efas.contains(name)) return;
  usage.efas[name].counters[std::string(sample.name.substr(kEfaPrefix.size()))] = sample.value;
}

using Kind = model::DeviceMemoryKind;
constexpr std::string_view kCore = "neuroncore";
constexpr std::string_view kDevice = "neuron_device_index";

constexpr std::array<Family, 28> kFamilies = {{
    {"neuroncore_utilization_ratio", kCore, "",
     [](NodeUsage& usage, const Sample& sample) {
       if (CoreUse* core = core_of(usage, sample)) core->percent = percent(sample.value);
     }},
    {"neuron_core_memory_used_bytes", kCore, "memory_location", store_core_memory},
    {"neuron_core_flops_total", kCore, "",
     [](NodeUsage& usage, const Sample& sample) {
       if (CoreUse* core = core_of(usage, sample)) core->flops = sample.value;
     }},
    {"neuroncore_memory_usage_constants", kCore, "", store_kind<Kind::constants>},
    {"neuroncore_memory_usage_model_code", kCore, "", store_kind<Kind::model_code>},
    {"neuroncore_memory_usage_model_shared_scratchpad", kCore, "", store_kind<Kind::model_shared_scratchpad>},
    {"neuroncore_memory_usage_runtime_memory", kCore, "", store_kind<Kind::runtime_memory>},
    {"neuroncore_memory_usage_tensors", kCore, "", store_kind<Kind::tensors>},
    {"neuron_device_host_memory_used_bytes", kDevice, "kind", store_host_memory},
    {"neuron_device_power_ratio", kDevice, "statistic", store_power},
    {"hardware_ecc_events_total", kDevice, "event_type", store_ecc},
    {"node_amazonefa_rx_bytes", "device", "", store_efa},
    {"node_amazonefa_tx_bytes", "device", "", store_efa},
    {"node_amazonefa_rdma_read_bytes", "device", "", store_efa},
    {"node_amazonefa_rdma_write_bytes", "device", "", store_efa},
    {"node_amazonefa_retrans_pkts", "device", "", store_efa},
    {"node_amazonefa_rx_drops", "device", "", store_efa},
    {"node_amazonefa_cmds_err", "device", "", store_efa},
    {"node_amazonefa_no_completion_cmds", "device", "", store_efa},
    {"node_amazonefa_rdma_read_wr_err", "device", "", store_efa},
    {"node_amazonefa_rdma_write_wr_err", "device", "", store_efa},
    {"node_amazonefa_retrans_timeout_events", "device", "", store_efa},
    {"node_amazonefa_unresponsive_remote_events", "device", "", store_efa},
    {"neuron_agent_usage_age_seconds", "", "",
     [](NodeUsage& usage, const Sample& sample) {
       if (sample.value >= 0) usage.sample_age = sample.value;
     }},
    {"system_vcpu_count", "", "",
     [](NodeUsage& usage, const Sample& sample) {
       constexpr double kMostCpus = 100'000;
       if (sample.value >= 0 && sample.value <= kMostCpus) usage.cpu_count = static_cast<int>(sample.value);
     }},
    {"system_vcpu_usage_ratio", "", "usage_type",
     [](NodeUsage& usage, const Sample& sample) {
       if (sample.kind == "user") usage.cpu_user_percent = percent(sample.value);
       if (sample.kind == "system") usage.cpu_system_percent = percent(sample.value);
     }},
    {"system_memory_total_bytes", "", "",
     [](NodeUsage& usage, const Sample& sample) { usage.memory_total = whole(sample.value); }},
    {"system_memory_used_bytes", "", "",
     [](NodeUsage& usage, const Sample& sample) { usage.memory_used = whole(sample.value); }},
}};

// The value of label `name` in `labels`, the text between the braces; nullopt where it is absent or has an escape,
// which no label that is read here has.
std::optional<std::string_view> label_of(std::string_view labels, std::string_view name) {
  while (!labels.empty()) {
    const auto equals = labels.find("=\"");
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = labels.substr(0, equals);
    labels.remove_prefix(equals + 2);
    std::size_t end = 0;
    bool escaped = false;
    while (end < labels.size() && labels[end] != '"') {
      escaped = escaped || labels[end] == '\\';
      end += labels[end] == '\\' ? 2 : 1;
    }
    if (end >= labels.size()) return std::nullopt;
    if (key == name) return escaped ? std::nullopt : std::optional(labels.substr(0, end));
    labels.remove_prefix(end + 1);
    if (labels.starts_with(',')) labels.remove_prefix(1);
  }
  return std::nullopt;
}

// Where the labels end: the '}' outside of quotes.
std::size_t end_of_labels(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == '}' && !quoted) {
      return i;
    }
  }
  return std::string_view::npos;
}

const Family* family_of(std::string_view line) {
  const std::string_view name = line.substr(0, line.find_first_of("{ "));
  const auto found = std::ranges::find(kFamilies, name, &Family::name);
  return found == kFamilies.end() ? nullptr : &*found;
}

std::optional<Sample> sample_in(std::string_view line, const Family& family) {
  Sample sample;
  sample.name = family.name;
  std::string_view rest = line.substr(family.name.size());
  std::string_view labels;
  if (rest.starts_with('{')) {
    const std::size_t end = end_of_labels(rest);
    if (end == std::string_view::npos) return std::nullopt;
    labels = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  }
  const auto read = [&](std::string_view label, std::string_view& value) {
    if (label.empty()) return true;
    const auto found = label_of(labels, label);
    if (found) value = *found;
    return found.has_value();
  };
  if (!read(family.unit_label, sample.unit) || !read(family.kind_label, sample.kind)) return std::nullopt;
  rest = trim(rest);
  sample.number = rest.substr(0, rest.find(' '));  // a time may follow
  const char* end = sample.number.data() + sample.number.size();
  const auto [last, error] = std::from_chars(sample.number.data(), end, sample.value);
  if (error != std::errc() || last != end || !std::isfinite(sample.value)) return std::nullopt;
  return sample;
}

template <typename Take>
void each_sample(std::string_view text, Take take) {
  std::size_t samples = 0;
  while (!text.empty() && samples < kMostSamples) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const Family* family = family_of(line);
    if (family == nullptr) continue;
    const auto sample = sample_in(line, *family);
    if (!sample) continue;
    ++samples;
    take(*family, *sample);
  }
}

}  // namespace

std::string kept_metrics(std::string_view text) {
  std::string kept;
  each_sample(text, [&](const Family& family, const Sample& sample) {
    kept += sample.name;
    const auto label = [&](std::string_view name, std::string_view value, std::string_view before) {
      kept.append(before).append(name).append("=\"").append(value).append("\"");
    };
    if (!family.unit_label.empty()) label(family.unit_label, sample.unit, "{");
    if (!family.kind_label.empty()) label(family.kind_label, sample.kind, family.unit_label.empty() ? "{" : ",");
    if (!family.unit_label.empty() || !family.kind_label.empty()) kept += '}';
    kept.append(" ").append(sample.number).append("\n");
  });
  return kept;
}

NodeUsage parse_usage(std::string_view text) {
  NodeUsage usage;
  each_sample(text, [&](const Family& family, const Sample& sample) { family.store(usage, sample); });
  return usage;
}

void add_rates(const NodeUsage& before, NodeUsage& now) {
  constexpr double kLeastWindow = 2;  // the page may be a second old, samples are at least three seconds apart
  const double seconds = (now.read_at - now.sample_age.value_or(0)) - (before.read_at - before.sample_age.value_or(0));
  if (seconds < kLeastWindow) {
    for (auto& [name, efa] : now.efas) {
      if (const auto old = before.efas.find(name); old != before.efas.end()) efa = old->second;
    }
    for (auto& [id, core] : now.cores) {
      const auto old = before.cores.find(id);
      if (old == before.cores.end()) continue;
      core.flops = old->second.flops;
      core.flops_per_second = old->second.flops_per_second;
    }
    now.has_rates = before.has_rates;
    now.read_at = before.read_at;  // the next window begins where this one did
    now.sample_age = before.sample_age;
    return;
  }
  now.has_rates = true;
  for (auto& [name, efa] : now.efas) {
    const auto old = before.efas.find(name);
    if (old == before.efas.end()) continue;
    for (const auto& [counter, value] : efa.counters) {
      const auto earlier = old->second.counters.find(counter);
      if (earlier == old->second.counters.end() || earlier->second > value) continue;
      efa.per_second[counter] = (value - earlier->second) / seconds;
    }
  }
  for (auto& [id, core] : now.cores) {
    const auto old = before.cores.find(id);
    if (old == before.cores.end() || !core.flops || !old->second.flops || *core.flops < *old->second.flops) continue;
    core.flops_per_second = (*core.flops - *old->second.flops) / seconds;
  }
}

}  // namespace neuron::fleet
