#include "agent/host/attributes.h"

#include <algorithm>
#include <charconv>

#include "agent/base/parse.h"

namespace neuron::host {
namespace {

using health::SignalKind;

constexpr double kMaxPowerPercent = 1000;
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

bool only(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

auto not_a(std::string_view what, std::string_view text) {
  return fail(ErrorCode::data_corrupt, "not " + std::string(what) + ": \"" + printable(text, 40) + "\"");
}

// The number behind `prefix`, written without leading zero and in at most `max_digits` digits.
std::optional<int> index_behind(std::string_view name, std::string_view prefix, std::size_t max_digits) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (!is_digits(name) || name.size() > max_digits) return std::nullopt;
  if (name.size() > 1 && name[0] == '0') return std::nullopt;
  return parse_int(name, 0, 9999);
}

Result<std::uint64_t> count_up_to(std::uint64_t max, std::string_view text) {
  const auto value = parse_u64(text);
  if (!value || *value > max) return not_a("a number from 0 to " + std::to_string(max), text);
  return *value;
}

Result<int> bounded(std::string_view text, int min, int max) {
  const auto value = parse_int(text, min, max);
  if (!value) return not_a("a number from " + std::to_string(min) + " to " + std::to_string(max), text);
  return *value;
}

Result<std::uint64_t> parse_as(SignalKind kind, std::string_view text) {
  if (kind == SignalKind::ecc) return parse_ecc_count(text);
  if (kind == SignalKind::hbm) return parse_hbm_count(text);
  if (kind == SignalKind::heartbeat) return parse_heartbeat(text);
  return parse_counter(text);
}

Result<std::vector<std::string>> parse_components(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view name : split(trim(text), ',')) {
    if (!is_rdma_name(name) || names.size() == 64) return not_a("a list of component names", text);
    names.emplace_back(name);
  }
  return names;
}

std::optional<double> parse_percent(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0 && value <= kMaxPowerPercent)) return std::nullopt;  // also refuses NaN
  return value;
}

// "pci0000:10"
bool is_host_bridge(std::string_view part) {
  return part.size() == 10 && part.starts_with("pci") && model::parse_bdf(std::string(part.substr(3)) + ":00.0");
}

// UltraServer files say so while there is no value.
bool is_no_value(std::string_view text) {
  return text.empty() || text == "busy" || text == "invalid";
}

}  // namespace

std::optional<int> device_index_of(std::string_view name) {
  return index_behind(name, "neuron", 4);
}

std::optional<int> core_index_of(std::string_view name) {
  const auto index = index_behind(name, "neuron_core", 2);
  return index && *index < kMaxCores ? index : std::nullopt;
}

std::optional<int> uverbs_index_of(std::string_view name) {
  return index_behind(name, "uverbs", 4);
}

bool is_rdma_name(std::string_view name) {
  return !name.empty() && name.size() < 64 && only(name, kNameCharacters) && name != "." && name != "..";
}

Result<std::uint64_t> parse_counter(std::string_view text) {
  const auto value = parse_u64(text);
  if (!value) return not_a("a number", text);
  return *value;
}

Result<std::uint64_t> parse_ecc_count(std::string_view text) {
  return count_up_to(65535, text);
}

Result<std::uint64_t> parse_hbm_count(std::string_view text) {
  return count_up_to(4 * 65535, text);
}

std::optional<bool> parse_switch(std::string_view text) {
  text = trim(text);
  if (text == "N" || text == "Y") return text == "Y";
  const auto value = parse_u64(text);
  return value ? std::optional(*value != 0) : std::nullopt;
}

Result<std::uint64_t> parse_heartbeat(std::string_view text) {
  return count_up_to(255, text);
}

Result<int> parse_reset_state(std::string_view text) {
  return bounded(text, 0, 2);
}

Result<void> store_signal(const health::DeviceSignal& signal, std::string_view text, model::DeviceSignals& signals) {
  const bool proves_reach = signal.kind == SignalKind::heartbeat || signal.kind == SignalKind::components;
  if (proves_reach || signal.kind == SignalKind::health) {
    if (trim(text) == "device_unreachable") {
      signals.unreachable = true;
      return {};
    }
    if (proves_reach && !signals.unreachable) signals.unreachable = false;
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

Result<int> parse_core_count(std::string_view text) {
  return bounded(text, 1, kMaxCores);
}

Result<std::optional<std::string>> parse_serial(std::string_view text) {
  text = trim(text);
  if (text.empty()) return std::optional<std::string>();
  if (text.size() != 16 || !only(text, kHexDigits)) return not_a("16 hex digits", text);
  return std::optional<std::string>(text);
}

Result<std::string> parse_arch(std::string_view text) {
  text = trim(text);
  if (text.size() < 3 || text.size() > 16 || text[0] != 'N' || !only(text, kNameCharacters)) {
    return not_a("an architecture such as NDv2", text);
  }
  return std::string(text);
}

Result<std::vector<int>> parse_connected_devices(std::string_view text) {
  std::vector<int> indices;
  for (const std::string_view part : split(trim(text), ',')) {
    const auto index = is_digits(part) ? parse_int(part, 0, 9999) : std::nullopt;
    if (!index || indices.size() == kMaxDevices) return not_a("a list of device numbers such as 12, 3, 4, 1", text);
    indices.push_back(*index);
  }
  return indices;
}

std::optional<model::PowerUsage> parse_power(std::string_view text) {
  const auto fields = split(trim(text), ',');
  if (fields.size() != 5 || fields[0] != "POWER_STATUS_VALID") return std::nullopt;
  // Minute 0 means not measured, whatever the status says, and no power of 0.
  if (!is_digits(fields[1]) || only(fields[1], "0")) return std::nullopt;
  const auto min = parse_percent(fields[2]);
  const auto max = parse_percent(fields[3]);
  const auto average = parse_percent(fields[4]);
  if (!min || !max || !average) return std::nullopt;
  return model::PowerUsage{*min, *max, *average};
}

Result<std::vector<int>> parse_ultraserver_modes(std::string_view text) {
  constexpr int kMaxMode = 15;
  std::vector<int> modes;
  text = trim(text);
  if (text.empty()) return modes;
  for (const std::string_view part : split(text, ',')) {
    const auto mode = parse_int(part, 0, kMaxMode);
    if (!mode) return not_a("a list of UltraServer modes", text);
    if (*mode != 0) modes.push_back(*mode);
  }
  std::ranges::sort(modes);
  modes.erase(std::unique(modes.begin(), modes.end()), modes.end());
  return modes;
}

Result<std::optional<std::string>> parse_server_id(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  text = trim(text);
  if (is_no_value(text)) return std::optional<std::string>();
  if (text.size() != kDigits || !only(text, kHexDigits)) return not_a("16 hexadecimal digits", text);
  if (only(text, "0")) return std::optional<std::string>();
  return std::optional(lower_ascii(text));
}

Result<std::optional<int>> parse_node_id(std::string_view text) {
  constexpr int kMaxNode = 1023;
  text = trim(text);
  if (is_no_value(text) || text == "-1") return std::optional<int>();
  const auto node = parse_int(text, 0, kMaxNode);
  if (!node) return not_a("a number from -1 to 1023", text);
  return std::optional(*node);
}

Result<int> parse_lnc_config(std::string_view text) {
  constexpr std::string_view kKey = "NEURON_LOGICAL_NC_CONFIG=";
  std::optional<int> lnc;
  for (std::string_view line : split(text, '\n')) {
    if (line.empty() || line[0] == '#' || !line.starts_with(kKey)) continue;
    lnc = parse_int(line.substr(kKey.size()), 1, 2);
    if (!lnc) return not_a("NEURON_LOGICAL_NC_CONFIG=1 or =2", line);
  }
  if (!lnc) return not_a("a file with a line NEURON_LOGICAL_NC_CONFIG=1 or =2", text);
  return *lnc;
}

Result<int> parse_numa_node(std::string_view text) {
  return bounded(text, -1, kMaxNumaNode);
}

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  return parse_int_list(text, kMaxCpu);
}

std::string instance_id_of(std::string_view asset_tag) {
  asset_tag = trim(asset_tag);
  const bool shape = asset_tag.starts_with("i-") && asset_tag.size() >= 10 && asset_tag.size() <= 32;
  return shape && only(asset_tag.substr(2), kHexDigits) ? std::string(asset_tag) : std::string();
}

std::string switch_key_of(std::string_view real_path) {
  const auto last = real_path.rfind('/');
  if (last == std::string_view::npos) return "";
  const std::string_view parent_path = real_path.substr(0, last);
  const std::string_view parent = parent_path.substr(parent_path.rfind('/') + 1);
  if (const auto port = model::parse_bdf(parent)) return model::to_string(*port).substr(0, 7);
  return is_host_bridge(parent) ? std::string(parent.substr(3)) : "";
}

std::string pcie_root_of(std::string_view real_path) {
  const auto parts = split(real_path, '/');
  const auto bridge = std::ranges::find_if(parts, is_host_bridge);
  return bridge == parts.end() ? "" : std::string(*bridge);
}

}  // namespace neuron::host
