#include "agent/health/assess.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "agent/health/reasons.h"
#include "agent/health/signals.h"

namespace neuron::health {
namespace {

using model::CoreSignals;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;

std::vector<const NeuronDevice*> alike(const HostScan& scan, std::optional<model::Family> family) {
  std::vector<const NeuronDevice*> devices;
  for (const NeuronDevice& device : scan.devices) {
    if (device.family == family && device.presence == Presence::present) devices.push_back(&device);
  }
  return devices;
}

bool has_problem(const NeuronDevice& device, std::string_view path) {
  const std::string end = '/' + std::string(path);
  return std::ranges::any_of(device.problems,
                             [&](const model::ReadProblem& problem) { return problem.path.ends_with(end); });
}

// Whether the file is there, with or without a value that anybody could use.
bool shows(const NeuronDevice& device, const DeviceSignal& signal) {
  const bool says_unreachable = is_cached(signal) && device.signals.unreachable.value_or(false);
  return has_value(device, signal) || says_unreachable || has_problem(device, signal.path);
}
bool shows(const NeuronDevice& device, const CoreSignal& signal) {
  return has_value(device, signal) || has_problem(device, signal.path);
}

// With one driver, all devices of a family show the same files: what half of them have, each should have.
template <typename Signal>
bool usual(const std::vector<const NeuronDevice*>& devices, const Signal& signal) {
  const auto having = static_cast<std::size_t>(
      std::ranges::count_if(devices, [&](const NeuronDevice* device) { return has_value(*device, signal); }));
  return having > 0 && 2 * having >= devices.size();
}

template <typename Signal>
bool on_none(const std::vector<const NeuronDevice*>& devices, const Signal& signal) {
  return std::ranges::none_of(devices, [&](const NeuronDevice* device) { return shows(*device, signal); });
}

// Where it is unknown whether this family has the files of a generation, one file decides for the others.
bool shown_by_its_generation(const std::vector<const NeuronDevice*>& devices, const DeviceSignal& signal,
                             std::optional<DriverRelease> release, std::optional<model::Family> family) {
  const auto same = [&](const DeviceSignal& other) {
    return other.weight == Weight::required && other.life.since == signal.life.since &&
           other.life.until == signal.life.until && other.life.layout == signal.life.layout;
  };
  return signal.life.perhaps != 0 && may_be_there(signal.life, release, family) &&
         std::ranges::any_of(device_signals(),
                             [&](const DeviceSignal& other) { return same(other) && !on_none(devices, other); });
}

bool must(const HostScan& scan, const std::vector<const NeuronDevice*>& devices, const DeviceSignal& signal,
          std::optional<model::Family> family) {
  if (signal.weight != Weight::required) return false;
  const bool is_turned_off = is_cached(signal) && scan.driver_settings.shows_health_files == false;
  if (is_turned_off) return false;
  const auto release = release_of(scan.driver_version, scan.devices);
  return must_be_there(signal.life, release, family) || shown_by_its_generation(devices, signal, release, family);
}

bool must(const HostScan& scan, const CoreSignal& signal, std::optional<model::Family> family) {
  return signal.weight == Weight::required &&
         must_be_there(signal.life, release_of(scan.driver_version, scan.devices), family);
}

std::string of_all_cores(const CoreSignal& signal) {
  return "neuron_core*/" + std::string(signal.path);
}

std::vector<std::string> missing_paths(const HostScan& scan, std::optional<model::Family> family) {
  const auto devices = alike(scan, family);
  std::vector<std::string> paths;
  for (const DeviceSignal& signal : device_signals()) {
    if (on_none(devices, signal) && must(scan, devices, signal, family)) paths.emplace_back(signal.path);
  }
  for (const CoreSignal& signal : core_signals()) {
    if (on_none(devices, signal) && must(scan, signal, family)) paths.push_back(of_all_cores(signal));
  }
  return paths;
}

void add_absent_of_cores(const NeuronDevice& device, const CoreSignal& signal, std::vector<std::string>& paths) {
  if (device.cores.empty()) return paths.push_back(of_all_cores(signal));
  for (const CoreSignals& core : device.cores) {
    if (core.*signal.value) continue;
    paths.push_back("neuron_core" + std::to_string(core.physical_index) + '/' + std::string(signal.path));
  }
}

// Files that this device should have and that are not there.
std::vector<std::string> absent_files(const HostScan& scan, const NeuronDevice& device) {
  std::vector<std::string> paths;
  const auto devices = alike(scan, device.family);
  for (const DeviceSignal& signal : device_signals()) {
    if (signal.weight != Weight::required || has_value(device, signal)) continue;
    if (usual(devices, signal) || must(scan, devices, signal, device.family)) paths.emplace_back(signal.path);
  }
  for (const CoreSignal& signal : core_signals()) {
    if (signal.weight != Weight::required) continue;
    const bool expected = has_value(device, signal) || usual(devices, signal) || must(scan, signal, device.family);
    if (expected) add_absent_of_cores(device, signal, paths);
  }
  if (paths.empty() || devices.size() < 2) return paths;
  // Files that all devices lack are reported once.
  const std::vector<std::string> everywhere = missing_paths(scan, device.family);
  std::erase_if(paths, [&](const std::string& path) {
    const auto core = path.find('/');
    const std::string of_cores = path.starts_with("neuron_core") ? "neuron_core*" + path.substr(core) : path;
    return std::ranges::find(everywhere, of_cores) != everywhere.end();
  });
  return paths;
}

// Whether the files of health_status/ are as they are before the driver's thread has filled them.
bool shows_no_reading(const NeuronDevice& device) {
  const model::DeviceSignals& signals = device.signals;
  const bool is_silent = !signals.unhealthy_components || signals.unhealthy_components->empty();
  const auto is_zero = [&](const DeviceSignal& signal) {
    return !is_cached(signal) || signal.value == nullptr || (signals.*signal.value).value_or(0) == 0;
  };
  return is_silent && std::ranges::all_of(device_signals(), is_zero);
}

}  // namespace

std::optional<std::string> why_unmeasured(const HostScan& scan, const NeuronDevice& device, bool never_beat) {
  const auto release = release_of(scan.driver_version, scan.devices);
  const auto any_of_health = [](const auto& holds) {
    return std::ranges::any_of(device_signals(),
                               [&](const DeviceSignal& signal) { return is_cached(signal) && holds(signal); });
  };
  const bool shows_any = any_of_health([&](const DeviceSignal& signal) { return shows(device, signal); });
  const std::string unmeasured = "the Neuron driver does not measure health: ";
  if (!shows_any) {
    const bool should = any_of_health([&](const DeviceSignal& signal) {
      return signal.weight == Weight::required && must_be_there(signal.life, release, device.family);
    });
    if (!should || scan.driver_settings.shows_health_files != false) return std::nullopt;
    return unmeasured + "its parameter enable_sysfs_health_status_nodes is 0, so there is no health_status/";
  }
  if (device.signals.unreachable.value_or(false) || !shows_no_reading(device)) return std::nullopt;
  if (scan.driver_settings.posts_metrics == false) {
    return unmeasured + "its parameter nmetric_log_posts is 0, so health_status/ is not updated";
  }
  if (!never_beat) return std::nullopt;
  return unmeasured + "every heartbeat has read 0 since the agent started (parameter nmetric_log_posts, or firmware)";
}

std::vector<MissingFiles> missing_everywhere(const HostScan& scan) {
  if (scan.layout == model::DriverLayout::unknown) return {};  // nothing is known of it at all, which is said as such
  std::set<model::Family> families;
  for (const NeuronDevice& device : scan.devices) {
    if (device.family && device.presence == Presence::present) families.insert(*device.family);
  }
  std::vector<MissingFiles> all;
  for (const model::Family family : families) {
    MissingFiles missing{family, {}, missing_paths(scan, family)};
    if (missing.paths.empty()) continue;
    for (const NeuronDevice* device : alike(scan, family)) {
      missing.devices.push_back("neuron" + std::to_string(device->index));
    }
    all.push_back(std::move(missing));
  }
  return all;
}

model::ReadProblem problem_of(const HostScan& scan, const MissingFiles& missing) {
  constexpr std::size_t kMaxNamed = 3;
  const bool alone = missing.devices.size() == 1;
  std::string path = "sys/class/neuron_device/" + (alone ? missing.devices.front() : std::string("neuron*")) + '/';
  for (std::size_t i = 0; i < missing.paths.size() && i < kMaxNamed; ++i) {
    path += (i == 0 ? "" : ", ") + missing.paths[i];
  }
  if (missing.paths.size() > kMaxNamed) {
    path += " and " + std::to_string(missing.paths.size() - kMaxNamed) + " more";
  }
  const std::string driver = scan.driver_version.empty() ? "this driver" : "driver " + scan.driver_version;
  const std::string where = alone ? "the device" : "any of " + std::to_string(missing.devices.size()) + " devices";
  return {model::ProblemKind::missing_signals, std::move(path),
          "missing on " + where + ", though " + driver + " should have " + (missing.paths.size() == 1 ? "it" : "them") +
              " on " + std::string(model::to_string(missing.family)) + "; health is unknown"};
}

std::string action_for_missing(const HostScan& scan) {
  const auto release = parse_release(scan.driver_version);
  if (release && *release >= kFilesMoved) {
    return "update the agent (drivers from 2.31.7 keep their files elsewhere), or pin a driver up to 2.30";
  }
  return std::string(reasons::kSignalsMissing.action);
}

std::string folder_of(const NeuronDevice& device) {
  return "sys/class/neuron_device/neuron" + std::to_string(device.index) + '/';
}

std::vector<model::ReadProblem> unread_signals(const HostScan& scan, const NeuronDevice& device) {
  std::vector<model::ReadProblem> unread;
  for (const model::ReadProblem& problem : device.problems) {
    if (problem.kind == model::ProblemKind::health_file) unread.push_back(problem);
  }
  const std::string folder = folder_of(device);
  for (const std::string& file : absent_files(scan, device)) {
    const bool is_known = std::ranges::find(unread, folder + file, &model::ReadProblem::path) != unread.end();
    if (!is_known) unread.push_back({model::ProblemKind::health_file, folder + file, "missing"});
  }
  return unread;
}

}  // namespace neuron::health
