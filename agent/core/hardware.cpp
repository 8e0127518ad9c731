#include "agent/core/hardware.h"

#include <algorithm>
#include <variant>

#include "agent/base/parse.h"
#include "agent/base/sorted.h"
#include "agent/core/catalogue.h"
#include "agent/core/logical_cores.h"

namespace neuron::core {
namespace {

constexpr std::string_view kDevice = "neuron-device-", kGroup = "neuron-group-", kEfa = "efa-", kNode = "neuron-node";
constexpr std::string_view kCore = "-core-", kShare = "-share-";
constexpr int kMaxPlace = 255;
constexpr int kMaxIndex = 9999;
constexpr std::size_t kMaxLabel = 63;      // of a DNS label (RFC 1123)
constexpr std::size_t kDigestDigits = 8;   // of a changed label
constexpr std::size_t kMaxRdmaBytes = 64;  // IB_DEVICE_NAME_MAX of the kernel, with its terminator
constexpr std::size_t kKeptOfLong = 40;    // bytes of a name that is too long

// Only text as std::to_string makes it.
std::optional<int> parse_index(std::string_view text) {
  const auto value = parse_int(text, 0, kMaxIndex);
  return value && std::to_string(*value) == text ? value : std::nullopt;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Ranges "0-1-4-5", ascending and apart.
std::optional<PoolName> parse_share(int device, std::string_view text) {
  ShareName name{device, {}};
  const auto numbers = split(text, '-');
  if (numbers.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const auto first = parse_index(numbers[i]), last = parse_index(numbers[i + 1]);
    if (!first || !last || *first > *last || *last > kMaxPlace) return std::nullopt;
    if (!name.places.empty() && *first < name.places.back() + 2) return std::nullopt;
    for (int place = *first; place <= *last; ++place) name.places.push_back(place);
  }
  return name;
}

std::optional<PoolName> parse_device(std::string_view text) {
  if (const std::size_t share = text.find(kShare); share != std::string_view::npos) {
    const auto device = parse_index(text.substr(0, share));
    return device ? parse_share(*device, text.substr(share + kShare.size())) : std::nullopt;
  }
  const std::size_t at = text.find(kCore);
  const auto device = parse_index(text.substr(0, at));
  if (!device) return std::nullopt;
  if (at == std::string_view::npos) return DeviceName{*device};
  const auto core = parse_index(text.substr(at + kCore.size()));
  if (!core) return std::nullopt;
  return CoreName{*device, *core};
}

std::optional<PoolName> parse_group(std::string_view text) {
  const std::size_t at = text.find('-');
  if (at == std::string_view::npos) return std::nullopt;
  const auto first = parse_index(text.substr(0, at));
  const auto last = parse_index(text.substr(at + 1));
  if (!first || !last || *first == *last) return std::nullopt;
  return GroupName{*first, *last};
}

struct ToText {
  std::string operator()(const DeviceName& name) const { return std::string(kDevice) + std::to_string(name.device); }
  std::string operator()(const CoreName& name) const {
    return (*this)(DeviceName{name.device}) + std::string(kCore) + std::to_string(name.core);
  }
  std::string operator()(const GroupName& name) const {
    return std::string(kGroup) + std::to_string(name.first) + "-" + std::to_string(name.last);
  }
  std::string operator()(const EfaName& name) const { return std::string(kEfa) + name.label; }
  std::string operator()(const NodeName& /*name*/) const { return std::string(kNode); }
  std::string operator()(const ShareName& name) const {
    std::string text = (*this)(DeviceName{name.device}) + std::string(kShare.substr(0, kShare.size() - 1));
    for (std::size_t i = 0, end = 0; i < name.places.size(); i = end + 1) {
      for (end = i; end + 1 < name.places.size() && name.places[end + 1] == name.places[end] + 1;) ++end;
      text += "-" + std::to_string(name.places[i]) + "-" + std::to_string(name.places[end]);
    }
    return text;
  }
};

struct NamedDevices {
  const model::HostScan& host;
  std::vector<int> operator()(const DeviceName& name) const { return {name.device}; }
  std::vector<int> operator()(const CoreName& name) const { return {name.device}; }
  std::vector<int> operator()(const GroupName& name) const { return members_of(name, ring_size(host)); }
  std::vector<int> operator()(const EfaName& /*name*/) const { return {}; }
  std::vector<int> operator()(const NodeName& /*name*/) const {
    std::vector<int> all;
    for (const model::NeuronDevice& device : host.devices) all.push_back(device.index);
    return all;
  }
  std::vector<int> operator()(const ShareName& name) const { return {name.device}; }
};

// The first of both; nullptr: none.
template <typename T>
const T* first_common(const std::vector<T>& one, const std::vector<T>& other) {
  const auto found = std::find_if(one.begin(), one.end(), [&](const T& each) { return is_in(each, other); });
  return found == one.end() ? nullptr : &*found;
}

// nullopt: the device lacks this core.
std::optional<HeldDevice> held_core(const model::NeuronDevice& device, int core, const model::HostScan& host) {
  HeldDevice held{device.index, {}};
  const auto count = logical_cores_of(device, host);
  if (!count) return held;
  if (core >= *count) return std::nullopt;
  const int width = host.lnc->value;  // logical_cores_of needs it too
  for (int i = 0; i < width; ++i) held.places.push_back(core * width + i);
  return held;
}

constexpr std::string_view kAdmin = "-admin", kRequest = "-request";

// Takes `end` from the end of `text`; false when it ends otherwise, or nothing would be left.
bool take_suffix(std::string_view& text, std::string_view end) {
  if (text.size() <= end.size() || !text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

}  // namespace

std::vector<int> Hardware::device_indices() const {
  std::vector<int> indices;
  for (const HeldDevice& held : devices) indices.push_back(held.device);
  return indices;
}

void Hardware::add(const Hardware& more) {
  for (const HeldDevice& held : more.devices) {
    const auto at = std::lower_bound(devices.begin(), devices.end(), held.device,
                                     [](const HeldDevice& each, int device) { return each.device < device; });
    if (at == devices.end() || at->device != held.device) {
      devices.insert(at, held);
    } else if (at->places.empty() || held.places.empty()) {
      at->places.clear();
    } else {
      at->places = merged(at->places, held.places);
    }
  }
  efas = merged(efas, more.efas);
}

std::optional<std::string> overlap(const Hardware& one, const Hardware& other) {
  for (const HeldDevice& held : one.devices) {
    for (const HeldDevice& theirs : other.devices) {
      if (held.device != theirs.device) continue;
      const std::string device = "neuron" + std::to_string(held.device);
      if (held.places.empty() || theirs.places.empty()) return device;
      if (const int* place = first_common(held.places, theirs.places)) {
        return "core position " + std::to_string(*place) + " of " + device;
      }
    }
  }
  if (const std::string* efa = first_common(one.efas, other.efas)) return "interface " + *efa;
  return std::nullopt;
}

std::vector<int> core_ids_of(const Hardware& hardware, const model::HostScan& host) {
  std::vector<int> cores;
  for (const HeldDevice& held : hardware.devices) {
    const model::NeuronDevice* device = model::find_device(host.devices, held.device);
    if (device == nullptr) continue;
    const std::vector<int> ids = core_ids_of(*device, host);
    if (held.places.empty()) cores.insert(cores.end(), ids.begin(), ids.end());
    for (const int place : held.places) {
      const auto position = static_cast<std::size_t>(place / (host.lnc ? host.lnc->value : 1));
      if (position < ids.size()) cores.push_back(ids[position]);
    }
  }
  return sorted_unique(std::move(cores));
}

std::string to_string(const PoolName& name) {
  return std::visit(ToText{}, name);
}

std::optional<PoolName> parse_pool_name(std::string_view text) {
  if (text.size() > kMaxLabel) return std::nullopt;
  if (text == kNode) return NodeName{};
  if (std::string_view rest = text; take_prefix(rest, kDevice)) {
    auto name = parse_device(rest);
    return name && to_string(*name) == text ? name : std::nullopt;
  }
  if (take_prefix(text, kGroup)) return parse_group(text);
  if (take_prefix(text, kEfa) && is_dns_label(text)) return EfaName{std::string(text)};
  return std::nullopt;
}

int ring_size(const model::HostScan& host) {
  const InstanceType* type = find_instance_type(host.instance_type);
  int size = type != nullptr && type->family ? type->device_count : 0;
  for (const model::NeuronDevice& device : host.devices) size = std::max(size, device.index + 1);
  return size;
}

std::vector<int> members_of(const GroupName& group, int ring_size) {
  std::vector<int> members;
  if (group.first == group.last || std::min(group.first, group.last) < 0) return members;
  if (std::max(group.first, group.last) >= ring_size) return members;
  for (int index = group.first; index != group.last; index = (index + 1) % ring_size) members.push_back(index);
  members.push_back(group.last);
  return members;
}

std::string efa_label(std::string_view rdma_name) {
  std::string label(rdma_name.substr(0, kMaxRdmaBytes));
  std::replace(label.begin(), label.end(), '_', '-');
  const bool plain = rdma_name.find('-') == std::string_view::npos && is_dns_label(label);
  if (plain && kEfa.size() + label.size() <= kMaxLabel) return label;
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  std::replace_if(
      label.begin(), label.end(), [&](char c) { return !is_plain(c); }, '-');
  label.resize(std::min(label.size(), kKeptOfLong));
  label.erase(0, std::min(label.find_first_not_of('-'), label.size()));
  return label + (label.empty() ? "" : "-") + sha256_hex(rdma_name).substr(0, kDigestDigits);
}

std::vector<int> named_devices(const PoolName& name, const model::HostScan& host) {
  return std::visit(NamedDevices{host}, name);
}

Hardware hardware_of(const PoolName& name, const model::HostScan& host) {
  Hardware hardware;
  const auto* core = std::get_if<CoreName>(&name);
  const auto* share = std::get_if<ShareName>(&name);
  for (const int index : sorted_unique(named_devices(name, host))) {
    const model::NeuronDevice* device = model::find_device(host.devices, index);
    if (device == nullptr) continue;
    const auto held = core != nullptr ? held_core(*device, core->core, host) : HeldDevice{index, {}};
    if (held) hardware.devices.push_back(share != nullptr ? HeldDevice{index, share->places} : *held);
  }
  if (const auto* efa = std::get_if<EfaName>(&name)) {
    for (const model::EfaInterface& one : host.efas) {
      if (!one.name.empty() && efa_label(one.name) == efa->label) hardware.efas.push_back(one.name);
    }
  }
  hardware.efas = sorted_unique(std::move(hardware.efas));
  return hardware;
}

Hardware possible_hardware_of(const PoolName& name, const model::HostScan& host) {
  if (const auto* core = std::get_if<CoreName>(&name)) {
    if (core->device >= device_limit(host)) return {};
    const auto physical = physical_cores_per_device(host);
    HeldDevice held{core->device, {}};
    for (const int lnc : possible_lncs(host)) {
      for (int i = 0; i < lnc; ++i) held.places.push_back(core->core * lnc + i);
    }
    held.places = sorted_unique(std::move(held.places));
    if (!physical) return {{{core->device, {}}}, {}};
    std::erase_if(held.places, [&](int place) { return place >= *physical; });
    return held.places.empty() ? Hardware{} : Hardware{{std::move(held)}, {}};
  }
  Hardware hardware = hardware_of(name, host);
  for (const int index : named_devices(name, host)) {
    if (index < device_limit(host)) hardware.add({{{index, {}}}, {}});
  }
  return hardware;
}

Hardware possible_hardware_of(int core, std::optional<int> lnc, const model::HostScan& host) {
  Hardware hardware;
  const int physical = physical_cores_per_device(host).value_or(0);
  for (const int width : lnc ? std::vector{*lnc} : possible_lncs(host)) {
    const int each = physical / width;
    if (core < 0 || each < 1 || core / each >= device_limit(host)) continue;
    HeldDevice held{core / each, {}};
    for (int i = 0; i < width; ++i) held.places.push_back(core % each * width + i);
    hardware.add({{std::move(held)}, {}});
  }
  return hardware;
}

std::string claim_cdi_kind(std::string_view driver) {
  return "k8s." + std::string(driver) + "/claim";
}

std::string claim_cdi_name(std::string_view uid, std::string_view device, ClaimAccess access) {
  std::string name(uid);
  if (access == ClaimAccess::admin) name += kAdmin;
  return name.append("-").append(device);
}

std::optional<ClaimedDevice> claimed_device(std::string_view cdi_id, std::string_view driver, std::string_view device) {
  const std::string prefix = claim_cdi_kind(driver) + "=";
  if (device.empty() || !cdi_id.starts_with(prefix)) return std::nullopt;
  std::string_view uid = cdi_id.substr(prefix.size());
  std::string_view name = device;
  if (const std::size_t at = uid.rfind("-" + std::string(device) + std::string(kShare)); at != std::string_view::npos) {
    name = uid.substr(at + 1);
    if (!parse_pool_name(name)) return std::nullopt;
  }
  if (!take_suffix(uid, name) || !take_suffix(uid, "-")) return std::nullopt;
  const bool is_admin = take_suffix(uid, kAdmin);
  if (take_suffix(uid, kRequest)) return std::nullopt;
  return ClaimedDevice{is_admin ? ClaimAccess::admin : ClaimAccess::use, std::string(name)};
}

}  // namespace neuron::core
