#include "agent/host/last_seen.h"

#include <algorithm>
#include <utility>

#include "agent/base/parse.h"
#include "agent/host/attributes.h"
#include "agent/host/neuron_sysfs.h"

namespace neuron::host {
namespace {

using model::EfaInterface;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;
using model::ReadProblem;
using model::ScanPart;
using Kind = ScanPart::Kind;

constexpr const char* kProductName = "sys/devices/virtual/dmi/id/product_name";
constexpr std::size_t kMaxText = 64;
constexpr const char* kClass = "sys/class/neuron_device/";

// The text `read` from `path`; nullopt when absent. After a failed read, described in `failure`, as it was last read.
std::optional<std::string> kept_text(const std::string& path, Result<std::string> read, LastTexts& last,
                                     std::optional<ReadProblem>& failure) {
  if (read) return last[path] = *std::move(read);
  if (is_absent(read.error())) return last[path] = std::nullopt;
  failure = problem_with(path, read.error());
  const auto kept = last.find(path);
  return kept == last.end() ? std::nullopt : kept->second;
}

struct UltraServerFiles {
  const FsRoot& root;
  LastTexts& last;
  std::vector<ReadProblem>& problems;
  bool& is_unread;

  [[nodiscard]] std::optional<std::string> text(const std::string& path) const {
    std::optional<ReadProblem> failure;
    auto text = kept_text(path, root.read_attribute(path), last, failure);
    const bool was_read = last.contains(path);
    is_unread |= !was_read;
    if (failure && was_read) failure->detail += "; what was read last stands";
    if (failure) note_problem(problems, kMaxHostProblems, *std::move(failure));
    return text;
  }

  // nullopt without a text, for one that stands for no value, and when malformed.
  template <typename T>
  [[nodiscard]] std::optional<T> value(const std::string& name,
                                       Result<std::optional<T>> (*parse)(std::string_view)) const {
    const std::string path = std::string(kClass) + name;
    const auto read = text(path);
    if (!read) return std::nullopt;
    const auto value = parse(*read);
    if (value) return *value;
    note_problem(problems, kMaxHostProblems, problem_with(path, value.error()));
    return std::nullopt;
  }

  void add_membership(int nodes, const std::string& server_file, const std::string& node_file,
                      model::UltraServer& ultraserver) const {
    const auto server = value<std::string>(server_file, parse_server_id);
    const auto node = value<int>(node_file, parse_node_id);
    if (server && node) ultraserver.memberships.push_back({nodes, *server, *node});
  }
};

bool has(const LastSeen::Unread& unread, const ScanPart& part) {
  return std::ranges::find(unread, part) != unread.end();
}

bool has_kind(const LastSeen::Unread& unread, Kind kind) {
  return std::ranges::find(unread, kind, &ScanPart::kind) != unread.end();
}

// A device as last read, without the heartbeat: an unread one is no missed beat.
NeuronDevice stale(NeuronDevice device) {
  if (!device.signals.heartbeat) return device;
  device.signals.heartbeat.reset();
  note_problem(device.problems, kMaxDeviceProblems,
               {model::ProblemKind::health_file,
                device_path(device.index) + "/stats/hardware/health_status/healthcheck_heartbeat",
                "not read; the other values are the previous ones"});
  return device;
}

// Values from the lists of the classes and their links.
void fill_names(EfaInterface& efa, const EfaInterface& known) {
  if (efa.name.empty()) efa.name = known.name;
  if (efa.uverbs) return;
  efa.uverbs = known.uverbs;
  efa.node_present = known.node_present;
  if (!efa.no_completion_cmds) efa.no_completion_cmds = known.no_completion_cmds;
}

// Takes `known` over from `from`, the list of the newest scan; a part that was not read stays as it was in `known`.
template <typename Key, typename Part, typename WasRead>
void take_parts(const std::vector<Part>& from, Key Part::*key, const WasRead& was_read, bool keep_others,
                std::map<Key, Part>& known) {
  std::map<Key, Part> parts;
  for (const Part& part : from) {
    auto last = known.extract(part.*key);
    if (was_read(part) || !last) {
      parts.emplace(part.*key, part);
    } else {
      parts.insert(std::move(last));
    }
  }
  if (keep_others) parts.merge(known);
  known = std::move(parts);
}

void fill_devices(HostScan& scan, const LastSeen::Unread& unread, const std::map<int, NeuronDevice>& known) {
  std::map<int, NeuronDevice> lacking = known;
  for (NeuronDevice& device : scan.devices) {
    const auto last = lacking.extract(device.index);
    const bool was_read = device.presence != Presence::present || !has(unread, {Kind::device, device.index});
    if (last && !was_read) device = stale(last.mapped());
  }
  if (!has(unread, {Kind::devices})) return;
  for (auto& [index, device] : lacking) scan.devices.push_back(stale(std::move(device)));
  std::ranges::sort(scan.devices, {}, &NeuronDevice::index);
}

void fill_efas(HostScan& scan, const LastSeen::Unread& unread, const std::map<model::Bdf, EfaInterface>& known) {
  std::map<model::Bdf, EfaInterface> lacking = known;
  for (EfaInterface& efa : scan.efas) {
    const auto last = lacking.extract(efa.bdf);
    if (!last || efa.presence != Presence::present) continue;
    if (has(unread, {Kind::efa, 0, efa.bdf})) {
      efa = last.mapped();
    } else if (has(unread, {Kind::efa_classes})) {
      fill_names(efa, last.mapped());
    }
  }
  for (auto& [bdf, efa] : lacking) {
    if (has(unread, {Kind::pci}) || has(unread, {Kind::efa, 0, bdf})) scan.efas.push_back(std::move(efa));
  }
  std::ranges::sort(scan.efas, {}, &EfaInterface::bdf);
}

}  // namespace

Result<std::string> read_instance_type(const FsRoot& root) {
  const auto text = root.read_attribute(kProductName);
  if (!text && !is_absent(text.error())) return fail(text.error());
  return text ? printable(*text, kMaxText) : "";
}

void read_host_texts(const FsRoot& root, LastTexts& last, HostScan& scan) {
  const auto read = [&](const char* path) {
    std::optional<ReadProblem> failure;
    const auto text = kept_text(path, root.read_attribute(path), last, failure);
    if (failure) note_problem(scan.problems, kMaxHostProblems, *std::move(failure));
    return text ? printable(*text, kMaxText) : "";
  };
  scan.instance_type = read(kProductName);
  scan.instance_id = instance_id_of(read("sys/devices/virtual/dmi/id/board_asset_tag"));
  scan.driver_version = read("sys/module/neuron/version");
  scan.efa_driver_version = read("sys/module/efa/version");
}

void read_driver_settings(const FsRoot& root, LastTexts& last, HostScan& scan) {
  const auto read = [&](const std::string& name) -> std::optional<bool> {
    const std::string path = "sys/module/neuron/parameters/" + name;
    auto text = root.read_attribute(path);
    if (!text && text.error().code == ErrorCode::permission_denied) return std::nullopt;
    std::optional<ReadProblem> failure;
    const auto kept = kept_text(path, std::move(text), last, failure);
    if (failure) note_problem(scan.problems, kMaxHostProblems, *std::move(failure));
    return kept ? parse_switch(*kept) : std::nullopt;
  };
  scan.driver_settings = {read("nmetric_log_posts"), read("enable_sysfs_health_status_nodes")};
}

void read_lnc(const FsRoot& root, LastTexts& last, HostScan& scan) {
  static constexpr const char* kPath = "opt/aws/neuron/logical_nc_config";
  std::optional<ReadProblem> failure;
  const auto text = kept_text(kPath, root.read_file(kPath, kMaxAttributeBytes), last, failure);
  if (text) {
    const auto lnc = parse_lnc_config(*text);
    if (lnc) scan.lnc = {*lnc, model::Origin::live};
    if (!lnc && !failure) failure = problem_with(kPath, lnc.error());
  }
  scan.lnc_is_unread = !last.contains(kPath);
  if (!failure) return;
  if (scan.lnc_is_unread) {
    failure->detail += "; devices with a choice of LNC are not offered before it has been read";
  }
  failure->kind = model::ProblemKind::lnc_file;
  note_problem(scan.problems, kMaxHostProblems, *std::move(failure));
}

std::optional<model::UltraServer> read_ultraserver(const FsRoot& root, LastTexts& last,
                                                   std::vector<ReadProblem>& problems, bool& is_unread) {
  const UltraServerFiles files{root, last, problems, is_unread};
  const std::string path = std::string(kClass) + "ultraserver_mode";
  const auto text = files.text(path);
  if (!text) return std::nullopt;
  model::UltraServer ultraserver;
  ultraserver.busy = trim(*text) == "busy";
  auto modes = ultraserver.busy ? Result<std::vector<int>>() : parse_ultraserver_modes(*text);
  if (modes) {
    ultraserver.modes = *std::move(modes);
  } else {
    note_problem(problems, kMaxHostProblems, problem_with(path, modes.error()));
  }
  ultraserver.partition_nodes = files.value<int>("node_cnt", parse_node_id);
  if (const int nodes = ultraserver.partition_nodes.value_or(0); nodes != 1) {  // 1: linked with no other
    files.add_membership(nodes, "reservation_id", "node_id", ultraserver);
  }
  for (const int nodes : {2, 4}) {
    const std::string suffix = "_" + std::to_string(nodes);
    files.add_membership(nodes, "server_id" + suffix, "node_id" + suffix, ultraserver);
  }
  return ultraserver;
}

void forget_ultraserver(LastTexts& last) {
  std::erase_if(last, [](const auto& entry) { return entry.first.starts_with(kClass); });
}

LastTexts LastSeen::texts() const {
  const MutexLock lock(mutex_);
  return texts_;
}

void LastSeen::fill(HostScan& scan, const Unread& unread) const {
  if (unread.empty()) return;
  const MutexLock lock(mutex_);
  for (const auto& [list, was_read] :
       {std::pair(Kind::devices, devices_were_read_), std::pair(Kind::pci, pci_was_read_),
        std::pair(Kind::efa_classes, classes_were_read_)}) {
    if (has(unread, {list}) && !was_read) scan.unread_lists.push_back({list});
  }
  if (has(unread, {Kind::devices}) && !scan.ultraserver) {
    scan.ultraserver = host_.ultraserver;
    scan.ultraserver_is_unread = !devices_were_read_ || host_.ultraserver_is_unread;
  }
  if (has(unread, {Kind::pci}) && scan.neuron_pci_functions == 0) {
    scan.neuron_pci_functions = host_.neuron_pci_functions;
  }
  const bool lacks_devices = has(unread, {Kind::devices}) || has_kind(unread, Kind::device);
  if (lacks_devices && scan.layout == model::DriverLayout::none) scan.layout = host_.layout;
  fill_devices(scan, unread, devices_);
  fill_efas(scan, unread, efas_);
}

void LastSeen::take(const HostScan& scan, const Unread& unread, LastTexts texts) {
  const MutexLock lock(mutex_);
  texts_ = std::move(texts);
  devices_were_read_ = devices_were_read_ || !has(unread, {Kind::devices});
  pci_was_read_ = pci_was_read_ || !has(unread, {Kind::pci});
  const bool has_names = std::ranges::any_of(scan.efas, [](const auto& efa) { return efa.uverbs.has_value(); });
  classes_were_read_ = classes_were_read_ || has_names || !has(unread, {Kind::efa_classes});
  host_ = scan;
  host_.devices.clear();
  host_.efas.clear();
  host_.unread_lists.clear();
  const bool lacks_list = has(unread, {Kind::devices});
  const auto device_was_read = [&](const NeuronDevice& device) {
    return device.presence == Presence::present && !has(unread, {Kind::device, device.index}) && !lacks_list;
  };
  const auto efa_was_read = [](const EfaInterface& efa) { return efa.presence == Presence::present; };
  const bool lacks_efas = has(unread, {Kind::pci}) || has(unread, {Kind::efa_classes});
  take_parts(scan.devices, &NeuronDevice::index, device_was_read, lacks_list, devices_);
  take_parts(scan.efas, &EfaInterface::bdf, efa_was_read, lacks_efas, efas_);
}

}  // namespace neuron::host
