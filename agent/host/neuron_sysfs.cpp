#include "agent/host/neuron_sysfs.h"

#include <algorithm>
#include <array>
#include <set>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/host/attributes.h"

namespace neuron::host {

using model::DriverLayout;
using model::NeuronDevice;
using model::Origin;

namespace {

// Entries of a device directory before driver 2.8, with those of every kernel device.
bool is_bare_entry(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames = {
      "connected_devices", "core_count", "dev", "device", "metrics", "power", "reset", "subsystem", "uevent"};
  return std::ranges::find(kNames, name) != kNames.end() || core_index_of(name).has_value();
}

Result<model::Family> parse_device_name(std::string_view text) {
  if (const auto family = model::parse_family(text)) return *family;
  return fail(ErrorCode::data_corrupt, "not a known device name: \"" + printable(text, 40) + "\"");
}

}  // namespace

std::string device_path(int index) {
  return "sys/class/neuron_device/neuron" + std::to_string(index);
}

std::optional<std::uint64_t> process_memory_of_core(const FsRoot& root, int device, int physical_core,
                                                    std::optional<std::uint64_t> limit) {
  constexpr std::uint64_t kAboveAnyDevice = std::uint64_t{1} << 48U;
  constexpr std::array kKinds = {
      "tensors",        "constants",  "model_code", "model_shared_scratchpad", "nonshared_scratchpad",
      "runtime_memory", "collectives"};
  const std::string folder =
      device_path(device) + "/neuron_core" + std::to_string(physical_core) + "/stats/memory_usage/device_mem/";
  std::optional<std::uint64_t> sum;
  bool is_whole = true;
  for (const char* kind : kKinds) {
    const auto text = root.read_attribute(folder + kind + "/total");
    if (!text && is_absent(text.error())) continue;
    const auto bytes = text ? parse_u64(*text) : std::nullopt;
    const bool is_usable = bytes && *bytes <= limit.value_or(kAboveAnyDevice);
    if (is_usable) sum = sum.value_or(0) + *bytes;
    is_whole = is_whole && is_usable;
  }
  if (sum == std::uint64_t{0} && !is_whole) return std::nullopt;
  return sum;
}

Result<NeuronDeviceReader> NeuronDeviceReader::open(const FsRoot& root, int index, std::string_view driver_version) {
  TRY_ASSIGN(FsRoot directory, root.subdirectory(device_path(index)));
  TRY_ASSIGN(const FileId id, directory.identify_self());
  TRY_ASSIGN(const DirectoryStamp stamp, directory.stamp_self());  // before the list, so that no change is missed
  TRY_ASSIGN(auto entries, directory.list(""));
  NeuronDeviceReader reader(std::move(directory), id, index, health::parse_release(driver_version));
  reader.stamp_ = stamp;
  reader.set_entries(std::move(entries));
  return reader;
}

void NeuronDeviceReader::set_entries(std::vector<std::string> entries) {
  entries_ = std::move(entries);
  only_bare_entries_ = true;
  has_root_files_ = false;
  core_indices_.clear();
  device_files_.clear();
  core_files_.clear();
  facts_.reset();
  neighbours_.state = serial_.state = State::unprobed;
  for (const std::string& name : entries_) {
    if (const auto core = core_index_of(name)) core_indices_.push_back(*core);
    if (name == "core_count" || name == "reset") has_root_files_ = true;
    if (!is_bare_entry(name)) only_bare_entries_ = false;
  }
  std::ranges::sort(core_indices_);
  for (const health::DeviceSignal& signal : health::device_signals()) {
    device_files_.push_back({{std::string(signal.path), model::ProblemKind::health_file}, &signal});
  }
  for (std::size_t core = 0; core < core_indices_.size(); ++core) {
    const std::string folder = "neuron_core" + std::to_string(core_indices_[core]) + '/';
    for (const health::CoreSignal& signal : health::core_signals()) {
      const auto kind = signal.reason != nullptr ? model::ProblemKind::health_file : model::ProblemKind::file;
      core_files_.push_back({{folder + std::string(signal.path), kind}, core, &signal});
    }
  }
}

bool NeuronDeviceReader::lacks_cores() const {
  const int count = facts_ && facts_->physical_cores ? facts_->physical_cores->value : 0;
  return core_indices_.empty() || static_cast<int>(core_indices_.size()) < count;
}

// A driver that is still making its files adds folders to this one.
void NeuronDeviceReader::follow_entries() {
  const auto stamp = directory_.stamp_self();
  if (!stamp || (*stamp == stamp_ && !lacks_cores())) return;
  auto entries = directory_.list("");
  if (!entries) return;
  stamp_ = *stamp;
  if (*entries != entries_) set_entries(*std::move(entries));
}

// Whether to read a file: an absent one is tried again as long as this driver may have it.
bool NeuronDeviceReader::may_exist(const Known& known, const health::Lifetime& life) const {
  return known.state != State::absent || health::may_be_there(life, release_, facts_->family);
}

void NeuronDeviceReader::complain(NeuronDevice& device, const Known& known, const Error& error) const {
  note_problem(device.problems, kMaxDeviceProblems,
               problem_with(device_path(index_) + '/' + known.path, error, known.problem_kind));
}

std::optional<std::string> NeuronDeviceReader::read_known(Known& known, Access access, NeuronDevice& device) {
  auto text = directory_.read_attribute(known.path);
  if (text) {
    known.state = State::present;
    return *std::move(text);
  }
  if (is_shortage(text.error())) {
    shortage_ = text.error();
    complain(device, known, text.error());
    return std::nullopt;
  }
  if (known.state != State::present && is_absent(text.error())) {
    known.state = State::absent;
    return std::nullopt;
  }
  if (text.error().code != ErrorCode::not_found) known.state = State::present;
  const bool expected = access == Access::root_only && text.error().code == ErrorCode::permission_denied;
  if (!expected) complain(device, known, text.error());
  return std::nullopt;
}

template <typename Value>
std::optional<Value> NeuronDeviceReader::value_of(const Known& known, const std::optional<std::string>& text,
                                                  Result<Value> (*parse)(std::string_view),
                                                  NeuronDevice& device) const {
  if (!text) return std::nullopt;
  auto value = parse(*text);
  if (value) return *std::move(value);
  complain(device, known, value.error());
  return std::nullopt;
}

// Constant while the device stays, once it exists. Unreadable values are read again.
void NeuronDeviceReader::read_facts() {
  NeuronDevice facts;
  facts.index = index_;
  facts_complete_ = true;
  const auto read = [&](Known& known, Access access) {
    const std::size_t problems = facts.problems.size();
    auto text = read_known(known, access, facts);
    const bool only_for_root = known.state == State::present && facts.problems.size() == problems;
    facts_complete_ = facts_complete_ && (text || only_for_root);
    return text;
  };
  Known name{"info/architecture/device_name"};
  facts.family = value_of(name, read(name, Access::everyone), parse_device_name, facts);
  Known arch{"info/architecture/arch_type"};
  facts.arch = value_of(arch, read(arch, Access::everyone), parse_arch, facts).value_or("");
  // Readable by root only up to driver 2.27; the number of folders is the same unless cores are masked out or pending.
  Known count{"core_count"};
  if (const auto cores = value_of(count, read(count, Access::root_only), parse_core_count, facts)) {
    facts.physical_cores = {*cores, Origin::live};
  }
  const auto folders = static_cast<int>(core_indices_.size());
  const bool some_lack = facts.family && folders < core::family_facts(*facts.family).physical_cores;
  if (!facts.physical_cores && folders > 0 && !some_lack) facts.physical_cores = {folders, Origin::live};
  facts_ = std::move(facts);
}

void NeuronDeviceReader::read_neighbours(NeuronDevice& device) {
  const auto text = read_known(neighbours_, Access::root_only, device);
  auto parsed = value_of(neighbours_, text, parse_connected_devices, device);
  if (!parsed) return;
  if (std::erase(*parsed, index_) > 0) {
    complain(device, neighbours_, make_error(ErrorCode::data_corrupt, "names the device itself"));
  }
  if (std::set(parsed->begin(), parsed->end()).size() < parsed->size()) {
    complain(device, neighbours_, make_error(ErrorCode::data_corrupt, "names a device twice"));
  }
  device.neighbours = {*std::move(parsed), Origin::live};
}

void NeuronDeviceReader::read_serial(NeuronDevice& device) {
  const auto text = read_known(serial_, Access::everyone, device);
  device.serial = value_of(serial_, text, parse_serial, device).value_or(std::nullopt);
  device.serial_all_ones = device.serial == model::kSerialOfOnes;
}

NeuronDevice NeuronDeviceReader::read() {
  shortage_.reset();
  follow_entries();
  if (!facts_ || !facts_complete_) read_facts();
  NeuronDevice device = *facts_;
  read_serial(device);
  read_neighbours(device);
  for (KnownDeviceFile& known : device_files_) {
    const Access access = known.signal->kind == health::SignalKind::reset ? Access::root_only : Access::everyone;
    if (!may_exist(known, known.signal->life)) continue;
    const auto text = read_known(known, access, device);
    if (!text) continue;
    if (const auto stored = store_signal(*known.signal, *text, device.signals); !stored) {
      complain(device, known, stored.error());
    }
  }
  health::unpack_hbm_counts(device.signals, health::hbm_form(release_, device.family));
  device.cores.resize(core_indices_.size());
  for (std::size_t core = 0; core < core_indices_.size(); ++core)
    device.cores[core].physical_index = core_indices_[core];
  for (KnownCoreFile& known : core_files_) {
    if (known.signal->reason != nullptr) read_core_file(known, device);
  }
  return device;
}

void NeuronDeviceReader::read_shown(NeuronDevice& device) {
  for (KnownCoreFile& known : core_files_) {
    if (known.signal->reason == nullptr) read_core_file(known, device);
  }
}

void NeuronDeviceReader::read_core_file(KnownCoreFile& known, NeuronDevice& device) {
  if (!may_exist(known, known.signal->life)) return;
  const auto text = read_known(known, Access::everyone, device);
  if (const auto value = value_of(known, text, parse_counter, device)) {
    device.cores[known.core].*known.signal->value = *value;
  }
}

DriverLayout NeuronDeviceReader::layout() const {
  std::optional<DriverLayout> best;
  for (const KnownDeviceFile& known : device_files_) {
    if (known.state != State::present || known.signal->kind == health::SignalKind::reset) continue;
    best = std::max(best, std::optional(known.signal->life.layout));
  }
  const bool has_core_files = std::ranges::find(core_files_, State::present, &Known::state) != core_files_.end();
  if (has_core_files) best = std::max(best, std::optional(DriverLayout::stats));
  // Below 2.8 there was nothing but the files at the top.
  if (!best && has_root_files_ && only_bare_entries_) best = DriverLayout::bare;
  return best.value_or(DriverLayout::unknown);
}

}  // namespace neuron::host
