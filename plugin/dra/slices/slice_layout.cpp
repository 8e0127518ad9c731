#include "plugin/dra/slices/slice_layout.h"

#include <algorithm>
#include <set>

namespace neuron::plugin::dra {
namespace {

// docs/reference/dra.md#limits
constexpr std::size_t kMaxDevices = 64;    // of a slice with counters or taints, from 1.35
constexpr std::size_t kMaxCombined = 128;  // of a slice with counters in 1.34
constexpr std::size_t kMaxCounters = 32;   // of a counter set, and of what one device uses of it
constexpr const char* kCounterSet = "cores";

using Devices = std::vector<const PoolDevice*>;

bool overlaps_others(const PoolDevice& device) {
  return device.kind == DeviceKind::core || device.kind == DeviceKind::group;
}

Devices of_kind(const Devices& devices, DeviceKind kind) {
  Devices found;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(found),
               [&](const PoolDevice* device) { return device->kind == kind; });
  return found;
}

// Devices that nobody holds and `goes` wants gone; says how many if there are any.
template <typename Goes>
void leave_out(Devices& devices, Goes goes, const std::string& why, std::vector<std::string>& left_out) {
  const std::size_t gone =
      std::erase_if(devices, [&](const PoolDevice* device) { return !device->held && goes(*device); });
  if (gone > 0) left_out.push_back(std::to_string(gone) + why);
}

SliceDevice slice_device(const PoolDevice& device, const LayoutOptions& options) {
  SliceDevice made{device.name, device.attributes, device.capacity};
  if (options.shape != SliceShape::plain && !device.consumes.empty()) made.consumes[kCounterSet] = device.consumes;
  if (options.taints) {
    for (const Taint& taint : device.taints) made.taints.push_back({taint});
  }
  return made;
}

// First fit in the order of `sections`, each kept in one slice where it fits into one, and else cut into full ones.
std::vector<Devices> packed(const std::vector<Devices>& sections, std::size_t first_free) {
  std::vector<Devices> slices(first_free);
  const auto append = [](Devices& slice, const Devices& section, std::size_t from, std::size_t count) {
    const auto begin = section.begin() + static_cast<std::ptrdiff_t>(from);
    slice.insert(slice.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  for (const Devices& section : sections) {
    if (section.empty()) continue;
    const auto room = std::find_if(slices.begin() + static_cast<std::ptrdiff_t>(first_free), slices.end(),
                                   [&](const Devices& slice) { return slice.size() + section.size() <= kMaxDevices; });
    if (room != slices.end()) {
      append(*room, section, 0, section.size());
      continue;
    }
    for (std::size_t from = 0; from < section.size(); from += kMaxDevices) {
      append(slices.emplace_back(), section, from, std::min(kMaxDevices, section.size() - from));
    }
  }
  return slices;
}

// Runs of lengths that are left out where not all fit: the longest first, powers of two and the whole node last.
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

// A slice of 1.34 has room for 128 devices and their counters, and no counter may be used from outside.
void fit_combined(Devices& devices, std::vector<std::string>& left_out) {
  const auto over = [&] {
    const auto users =
        std::count_if(devices.begin(), devices.end(), [](const auto* d) { return !d->consumes.empty(); });
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

// Without counters nothing may overlap: what a claim holds stays, and whatever shares a device with it goes.
void without_partitions(Devices& devices, std::vector<std::string>& left_out) {
  leave_out(devices, overlaps_others, " cores and groups: they need counters", left_out);
  std::set<int> taken;
  for (const PoolDevice* device : devices) {
    const bool is_part = overlaps_others(*device) || device->kind == DeviceKind::node;
    if (device->held && is_part) taken.insert(device->devices.begin(), device->devices.end());
  }
  const auto is_taken = [&](const PoolDevice& device) {
    return std::any_of(device.devices.begin(), device.devices.end(), [&](int index) { return taken.contains(index); });
  };
  leave_out(devices, is_taken, " devices: a claim holds part of them, and the server has no counters", left_out);
}

SliceContent content_of(const Devices& devices, const LayoutOptions& options) {
  SliceContent content;
  for (const PoolDevice* device : devices) content.devices.push_back(slice_device(*device, options));
  return content;
}

std::vector<Devices> sections_of(const Devices& devices) {
  return {of_kind(devices, DeviceKind::node), of_kind(devices, DeviceKind::device), of_kind(devices, DeviceKind::group),
          of_kind(devices, DeviceKind::core), of_kind(devices, DeviceKind::efa)};
}

// All that uses counters with them in the first slice, the rest behind it.
std::vector<SliceContent> combined(const Pool& pool, const Devices& devices, const LayoutOptions& options) {
  std::vector<Devices> sections = sections_of(devices);
  Devices users;
  for (std::size_t i = 0; i + 1 < sections.size(); ++i) {
    users.insert(users.end(), sections[i].begin(), sections[i].end());
  }
  std::vector<SliceContent> slices{content_of(users, options)};
  slices.front().counter_sets[kCounterSet] = pool.counters;
  for (const Devices& part : packed({sections.back()}, 0)) slices.push_back(content_of(part, options));
  return slices;
}

}  // namespace

Layout lay_out(const Pool& pool, const LayoutOptions& wanted) {
  Layout layout;
  LayoutOptions options = wanted;
  Devices devices;
  for (const PoolDevice& device : pool.devices) devices.push_back(&device);
  if (!options.taints) {
    leave_out(
        devices, [](const PoolDevice& device) { return device.unhealthy && !device.taints.empty(); },
        " unhealthy devices: this server drops taints", layout.left_out);
  }
  if (pool.counters.size() > kMaxCounters) options.shape = SliceShape::plain;
  if (options.shape == SliceShape::plain) without_partitions(devices, layout.left_out);
  if (options.shape == SliceShape::combined && !pool.counters.empty()) fit_combined(devices, layout.left_out);
  const bool overlap = std::any_of(devices.begin(), devices.end(), [](const auto* d) { return overlaps_others(*d); });
  if (options.shape == SliceShape::combined && !overlap) options.shape = SliceShape::plain;
  if (options.shape == SliceShape::combined) {
    layout.slices = combined(pool, devices, options);
    return layout;
  }
  const bool has_counters = options.shape == SliceShape::split && !pool.counters.empty();
  for (const Devices& part : packed(sections_of(devices), has_counters ? 1 : 0)) {
    layout.slices.push_back(content_of(part, options));
  }
  if (has_counters) layout.slices.front().counter_sets[kCounterSet] = pool.counters;
  return layout;
}

}  // namespace neuron::plugin::dra
