#include "plugin/dra/slices/pool.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::plugin::dra {
namespace {

using kube::ServerVersion;

// docs/reference/dra.md#limits
constexpr std::size_t kMaxDevices = 64;    // of a slice with counters or taints, from 1.35
constexpr std::size_t kMaxCombined = 128;  // of a slice with counters in 1.34
constexpr std::size_t kMaxCounters = 32;   // of a counter set, and of what one device uses of it

constexpr std::array kServerKinds = {
    std::pair{"plain", ServerKind{SliceShape::plain, false}},
    std::pair{"combined", ServerKind{SliceShape::combined, false}},
    std::pair{"split", ServerKind{SliceShape::split, false}},
    std::pair{"split,all-waits", ServerKind{SliceShape::split, true}},
};

using Devices = std::vector<const PoolDevice*>;

// Cores of a device that is offered as cores alone use no counters.
bool overlaps_others(const PoolDevice& device) {
  return (device.kind == DeviceKind::core && !device.consumes.empty()) || device.kind == DeviceKind::group;
}

Devices of_kind(const Devices& devices, DeviceKind kind) {
  Devices found;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(found),
               [&](const PoolDevice* device) { return device->kind == kind; });
  return found;
}

// Removes the devices for which `goes` is true, except held ones; `left_out` gets their number and why.
template <typename Goes>
void leave_out(Devices& devices, Goes goes, const std::string& why, std::vector<std::string>& left_out) {
  const std::size_t gone =
      std::erase_if(devices, [&](const PoolDevice* device) { return !device->held && goes(*device); });
  if (gone > 0) left_out.push_back(std::to_string(gone) + why);
}

// First fit in the order of `sections`, each in one slice where it fits into one, else cut into full slices. The first
// `reserved` slices stay empty.
std::vector<Devices> packed(const std::vector<Devices>& sections, std::ptrdiff_t reserved) {
  std::vector<Devices> slices(static_cast<std::size_t>(reserved));
  for (const Devices& section : sections) {
    const auto room = std::find_if(slices.begin() + reserved, slices.end(),
                                   [&](const Devices& slice) { return slice.size() + section.size() <= kMaxDevices; });
    if (room != slices.end()) {
      room->insert(room->end(), section.begin(), section.end());
      continue;
    }
    for (std::size_t i = 0; i < section.size(); ++i) {
      if (i % kMaxDevices == 0) slices.emplace_back();
      slices.back().push_back(section[i]);
    }
  }
  return slices;
}

// The order in which groups of one length are left out where not all fit: the longest first, powers of two and the
// whole node last.
std::vector<std::size_t> lengths_to_spare(const Devices& groups) {
  std::set<std::size_t, std::greater<>> lengths;
  for (const PoolDevice* group : groups) lengths.insert(group->devices.size());
  std::vector<std::size_t> order(lengths.begin(), lengths.end());
  const auto is_kept_long = [&](std::size_t length) {
    return (length & (length - 1)) == 0 || length == *lengths.begin();
  };
  std::stable_partition(order.begin(), order.end(), [&](std::size_t length) { return !is_kept_long(length); });
  return order;
}

// A slice of 1.34 has room for 128 devices and their counters, which other slices may not use.
void fit_combined(Devices& devices, std::vector<std::string>& left_out) {
  const auto over = [&] {
    const auto users = std::ranges::count_if(devices, [](const auto* d) { return !d->consumes.empty(); });
    return users > static_cast<std::ptrdiff_t>(kMaxCombined);
  };
  const std::size_t whole = of_kind(devices, DeviceKind::device).size();
  if (whole + of_kind(devices, DeviceKind::core).size() > kMaxCombined) {
    leave_out(
        devices, [](const PoolDevice& device) { return device.kind == DeviceKind::core; },
        " cores: a slice on this server holds at most 128 devices", left_out);
  }
  for (const std::size_t length : lengths_to_spare(of_kind(devices, DeviceKind::group))) {
    if (!over()) return;
    const auto goes = [&](const PoolDevice& device) {
      return device.kind == DeviceKind::group && device.devices.size() == length;
    };
    leave_out(devices, goes,
              " groups of " + std::to_string(length) + ": a slice on this server holds at most 128 devices", left_out);
  }
}

// Without counters nothing may overlap: held cores and groups stay, and all that share a device with them go.
void without_partitions(Devices& devices, std::vector<std::string>& left_out) {
  leave_out(devices, overlaps_others, " cores and groups: they need counters", left_out);
  std::set<int> taken;
  for (const PoolDevice* device : devices) {
    const bool is_part = overlaps_others(*device) || device->kind == DeviceKind::node;
    if (device->held && is_part) taken.insert(device->devices.begin(), device->devices.end());
  }
  const auto is_taken = [&](const PoolDevice& device) {
    return std::ranges::any_of(device.devices, [&](int index) { return taken.contains(index); });
  };
  leave_out(devices, is_taken, " devices: a claim holds part of them, and the server has no counters", left_out);
}

SliceContent content_of(const Devices& devices, const LayoutOptions& options) {
  SliceContent content;
  for (const PoolDevice* device : devices) {
    PoolDevice& made = content.devices.emplace_back(*device);
    if (options.shape == SliceShape::plain) made.consumes.clear();
    if (!options.taints) made.taints.clear();
  }
  return content;
}

// As they are where claims may share them, or not. An unhealthy core is no reason then to keep claims from the others,
// but where its taint evicts: whoever holds the core has to leave, and a taint is of the whole device.
std::vector<PoolDevice> shared_or_not(const Pool& pool, bool shares) {
  std::vector<PoolDevice> devices = pool.devices;
  for (PoolDevice& device : devices) {
    if (!shares) device.shareable_cores = 0;
    if (device.shareable_cores == 0) continue;
    const bool is_whole = device.shareable_cores == device.capacity["cores"];
    device.attributes["whole"] = is_whole;
    if (is_whole) continue;
    device.capacity["cores"] = device.shareable_cores;
    std::erase_if(device.taints,
                  [](const Taint& taint) { return taint.key.ends_with("/unhealthy") && taint.effect != "NoExecute"; });
    device.unhealthy = !device.taints.empty();
  }
  return devices;
}

std::vector<Devices> sections_of(const Devices& devices) {
  return {of_kind(devices, DeviceKind::node), of_kind(devices, DeviceKind::device), of_kind(devices, DeviceKind::group),
          of_kind(devices, DeviceKind::core), of_kind(devices, DeviceKind::efa)};
}

// The counters and all devices that use them in the first slice, the interfaces behind it.
std::vector<SliceContent> combined(const Pool& pool, const Devices& devices, const LayoutOptions& options) {
  std::vector<Devices> sections = sections_of(devices);
  const Devices interfaces = std::move(sections.back());
  sections.pop_back();
  Devices users;
  for (const Devices& section : sections) users.insert(users.end(), section.begin(), section.end());
  std::vector<SliceContent> slices{content_of(users, options)};
  slices.front().counters = pool.counters;
  for (const Devices& part : packed({interfaces}, 0)) slices.push_back(content_of(part, options));
  return slices;
}

Error no_server(std::string_view text) {
  return make_error(
      ErrorCode::invalid_argument,
      "\"" + printable(text) +
          "\" is not a server version: give three numbers from 1.34.0 on, and feature gates: 1.36.3 or "
          "1.34.2,DRAPartitionableDevices=true; the other gates are DRADeviceTaints and DRAConsumableCapacity");
}

std::optional<bool> truth_of(std::string_view word) {
  if (word == "true") return true;
  if (word == "false") return false;
  return std::nullopt;
}

}  // namespace

Layout lay_out(const Pool& pool, const LayoutOptions& wanted) {
  Layout layout;
  LayoutOptions options = wanted;
  if (pool.counters.size() > kMaxCounters) options.shape = SliceShape::plain;
  const bool is_wanted = pool.shares == Shares::on || (pool.shares == Shares::automatic && options.all_waits);
  const bool has_shares = is_wanted && options.shares && (options.shape == SliceShape::plain || pool.counters.empty());
  const std::vector<PoolDevice> all = shared_or_not(pool, has_shares);
  Devices devices;
  for (const PoolDevice& device : all) devices.push_back(&device);
  if (!options.taints) {
    leave_out(
        devices, [](const PoolDevice& device) { return device.unhealthy && !device.taints.empty(); },
        " unhealthy devices: this server drops taints", layout.left_out);
  }
  if (options.shape == SliceShape::plain) without_partitions(devices, layout.left_out);
  if (options.shape == SliceShape::combined && !pool.counters.empty()) fit_combined(devices, layout.left_out);
  const bool overlap = std::ranges::any_of(devices, [](const auto* d) { return overlaps_others(*d); });
  if (options.shape == SliceShape::combined && !overlap) options.shape = SliceShape::plain;
  if (options.shape == SliceShape::combined) {
    layout.slices = combined(pool, devices, options);
    return layout;
  }
  const bool has_counters = options.shape == SliceShape::split && !pool.counters.empty();
  for (const Devices& part : packed(sections_of(devices), has_counters ? 1 : 0)) {
    layout.slices.push_back(content_of(part, options));
  }
  if (has_counters) layout.slices.front().counters = pool.counters;
  return layout;
}

Result<SliceShape> shape_for(const ServerVersion& server) {
  if (server < ServerVersion{1, 34, 0}) {
    return fail(ErrorCode::failed_precondition,
                "the API server is " + server.text() +
                    ": this driver needs resource.k8s.io/v1 (dynamic resource allocation), available from 1.34");
  }
  if (server < ServerVersion{1, 35, 0}) return SliceShape::combined;
  // The schedulers of these versions panic on claims for all devices in pools with counters.
  if (server < ServerVersion{1, 35, 6}) return SliceShape::plain;
  if (server >= ServerVersion{1, 36, 0} && server < ServerVersion{1, 36, 2}) return SliceShape::plain;
  return SliceShape::split;
}

bool all_waits(const ServerVersion& server) {
  return server >= ServerVersion{1, 37, 0};
}

std::string to_text(const ServerKind& kind) {
  const auto* const found = std::ranges::find_if(kServerKinds, [&](const auto& one) { return one.second == kind; });
  return found == kServerKinds.end() ? kServerKinds.front().first : found->first;
}

std::optional<ServerKind> parse_server_kind(std::string_view text) {
  const auto* const found = std::ranges::find_if(kServerKinds, [&](const auto& one) { return one.first == text; });
  return found == kServerKinds.end() ? std::nullopt : std::optional(found->second);
}

Result<LayoutOptions> layout_for(std::string_view server) {
  const auto parts = split(server, ',');
  const auto version = parts.empty() ? std::nullopt : kube::parse_git_version(parts.front());
  if (!version) return fail(no_server(server));
  bool counters = *version >= ServerVersion{1, 36, 0};  // all gates are open by default from 1.36
  LayoutOptions options{SliceShape::plain, counters, counters, all_waits(*version)};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const std::size_t at = part.find('=');
    const auto value = at == std::string_view::npos ? std::nullopt : truth_of(part.substr(at + 1));
    const std::string_view gate = part.substr(0, at);
    bool* const known = gate == "DRAPartitionableDevices" ? &counters
                        : gate == "DRADeviceTaints"       ? &options.taints
                        : gate == "DRAConsumableCapacity" ? &options.shares
                                                          : nullptr;
    if (!value || known == nullptr) return fail(no_server(server));
    *known = *value;
  }
  TRY_ASSIGN(const SliceShape shape, shape_for(*version));
  if (counters) options.shape = shape;
  return options;
}

Result<void> check_kubelet(const ServerVersion& kubelet) {
  if (kubelet >= ServerVersion{1, 34, 2}) return {};
  if (kubelet < ServerVersion{1, 34, 0}) {
    return fail(ErrorCode::failed_precondition,
                "this node's kubelet is " + kubelet.text() + ": dynamic resource allocation needs 1.34.2 or newer");
  }
  return fail(ErrorCode::failed_precondition,
              "this node's kubelet is " + kubelet.text() +
                  ", which stops calling every driver after 30 minutes: 1.34.2 or newer is needed");
}

}  // namespace neuron::plugin::dra
