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

// The UltraServer's files: a failed read gives the last text.
class UltraServerFiles {
 public:
  UltraServerFiles(const FsRoot& root, UltraServerTexts& last, std::vector<ReadProblem>& problems)
      : root_(root), last_(last), problems_(problems) {}

  // nullopt when absent, or never read.
  [[nodiscard]] std::optional<std::string> text(const std::string& path) {
    auto read = root_.read_attribute(path);
    if (read) return last_[path] = *std::move(read);
    if (is_absent(read.error())) {
      last_.erase(path);
      return std::nullopt;
    }
    ReadProblem problem = problem_with(path, read.error());
    const auto last = last_.find(path);
    if (last != last_.end()) problem.detail += "; what was read last stands";
    note_problem(problems_, kMaxHostProblems, std::move(problem));
    return last == last_.end() ? std::nullopt : std::optional(last->second);
  }

  // nullopt without a text, for one that stands for no value, and when malformed.
  template <typename T>
  [[nodiscard]] std::optional<T> value(const std::string& name, Result<std::optional<T>> (*parse)(std::string_view)) {
    const std::string path = std::string(kClass) + name;
    const auto read = text(path);
    if (!read) return std::nullopt;
    const auto value = parse(*read);
    if (value) return *value;
    note_problem(problems_, kMaxHostProblems, problem_with(path, value.error()));
    return std::nullopt;
  }

 private:
  const FsRoot& root_;
  UltraServerTexts& last_;
  std::vector<ReadProblem>& problems_;
};

void add_membership(UltraServerFiles& files, int nodes, const std::string& server_file, const std::string& node_file,
                    model::UltraServer& ultraserver) {
  const auto server = files.value<std::string>(server_file, parse_server_id);
  const auto node = files.value<int>(node_file, parse_node_id);
  if (server && node) ultraserver.memberships.push_back({nodes, *server, *node});
}

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

void fill_texts(HostScan& scan, const HostScan& known) {
  if (scan.instance_type.empty()) scan.instance_type = known.instance_type;
  if (scan.instance_id.empty()) scan.instance_id = known.instance_id;
  if (scan.driver_version.empty()) scan.driver_version = known.driver_version;
  if (scan.efa_driver_version.empty()) scan.efa_driver_version = known.efa_driver_version;
  if (!scan.lnc) scan.lnc = known.lnc;
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

std::string read_instance_type(const FsRoot& root) {
  const auto text = root.read_attribute(kProductName);
  return text ? printable(*text, kMaxText) : "";
}

void HostTexts::read(const FsRoot& root, HostScan& scan, std::vector<ScanPart>& unread) {
  const auto refresh = [&](const char* path, std::string& text) {
    const auto read = root.read_attribute(path);
    if (read || is_absent(read.error())) {
      text = read ? printable(*read, kMaxText) : "";
      return;
    }
    unread.push_back({Kind::host});
    note_problem(scan.problems, kMaxHostProblems, problem_with(path, read.error()));
  };
  refresh(kProductName, instance_type_);
  refresh("sys/devices/virtual/dmi/id/board_asset_tag", asset_tag_);
  refresh("sys/module/neuron/version", driver_version_);
  refresh("sys/module/efa/version", efa_driver_version_);
  scan.instance_type = instance_type_;
  scan.instance_id = instance_id_of(asset_tag_);
  scan.driver_version = driver_version_;
  scan.efa_driver_version = efa_driver_version_;
}

void HostTexts::read_lnc(const FsRoot& root, HostScan& scan, std::vector<ScanPart>& unread) {
  static constexpr const char* kPath = "opt/aws/neuron/logical_nc_config";
  const auto complain = [&scan](const Error& error) {
    note_problem(scan.problems, kMaxHostProblems, problem_with(kPath, error, model::ProblemKind::lnc_file));
  };
  const auto text = root.read_file(kPath, kMaxAttributeBytes);
  if (!text && !is_absent(text.error())) {
    complain(text.error());
    unread.push_back({Kind::host});
    scan.lnc = lnc_;
    return;
  }
  lnc_.reset();
  if (!text) return;
  const auto lnc = parse_lnc_config(*text);
  if (lnc) {
    scan.lnc = lnc_ = {*lnc, model::Origin::live};
  } else {
    complain(lnc.error());
  }
}

std::optional<model::UltraServer> read_ultraserver(const FsRoot& root, UltraServerTexts& last,
                                                   std::vector<ReadProblem>& problems) {
  UltraServerFiles files(root, last, problems);
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
    add_membership(files, nodes, "reservation_id", "node_id", ultraserver);
  }
  for (const int nodes : {2, 4}) {
    const std::string suffix = "_" + std::to_string(nodes);
    add_membership(files, nodes, "server_id" + suffix, "node_id" + suffix, ultraserver);
  }
  return ultraserver;
}

UltraServerTexts LastSeen::ultraserver_texts() const {
  const MutexLock lock(mutex_);
  return ultraserver_texts_;
}

void LastSeen::fill(HostScan& scan, const Unread& unread) const {
  if (unread.empty()) return;
  const MutexLock lock(mutex_);
  for (const auto& [list, was_read] :
       {std::pair(Kind::devices, devices_were_read_), std::pair(Kind::pci, pci_was_read_),
        std::pair(Kind::efa_classes, classes_were_read_)}) {
    if (has(unread, {list}) && !was_read) scan.unread_lists.push_back({list});
  }
  if (has(unread, {Kind::host})) fill_texts(scan, host_);
  if (has(unread, {Kind::devices}) && !scan.ultraserver) scan.ultraserver = host_.ultraserver;
  if (has(unread, {Kind::pci}) && scan.neuron_pci_functions == 0) {
    scan.neuron_pci_functions = host_.neuron_pci_functions;
  }
  const bool lacks_devices = has(unread, {Kind::devices}) || has_kind(unread, Kind::device);
  if (lacks_devices && scan.layout == model::DriverLayout::none) scan.layout = host_.layout;
  fill_devices(scan, unread, devices_);
  fill_efas(scan, unread, efas_);
}

void LastSeen::take(const HostScan& scan, const Unread& unread, UltraServerTexts texts) {
  const MutexLock lock(mutex_);
  ultraserver_texts_ = std::move(texts);
  devices_were_read_ = devices_were_read_ || !has(unread, {Kind::devices});
  pci_was_read_ = pci_was_read_ || !has(unread, {Kind::pci});
  const bool has_names = std::ranges::any_of(scan.efas, [](const auto& efa) { return efa.uverbs.has_value(); });
  classes_were_read_ = classes_were_read_ || has_names || !has(unread, {Kind::efa_classes});
  host_ = scan;
  host_.devices.clear();
  host_.efas.clear();
  host_.unread_lists.clear();
  std::map<int, NeuronDevice> devices;
  for (const NeuronDevice& device : scan.devices) {
    const bool was_read = device.presence == Presence::present && !has(unread, {Kind::device, device.index}) &&
                          !has(unread, {Kind::devices});
    auto last = devices_.extract(device.index);
    if (was_read || !last) {
      devices.emplace(device.index, device);
    } else {
      devices.insert(std::move(last));
    }
  }
  if (has(unread, {Kind::devices})) devices.merge(devices_);
  devices_ = std::move(devices);
  std::map<model::Bdf, EfaInterface> efas;
  for (const EfaInterface& efa : scan.efas) {
    auto last = efas_.extract(efa.bdf);
    if (efa.presence == Presence::present || !last) {
      efas.emplace(efa.bdf, efa);
    } else {
      efas.insert(std::move(last));
    }
  }
  if (has(unread, {Kind::pci}) || has(unread, {Kind::efa_classes})) efas.merge(efas_);
  efas_ = std::move(efas);
}

}  // namespace neuron::host
