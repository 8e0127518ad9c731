#include "tools/neuron-gather/collector.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/base/clock.h"
#include "agent/base/parse.h"
#include "agent/health/kernel_errors.h"
#include "agent/host/attributes.h"
#include "agent/host/driver_query.h"
#include "agent/host/fs_root.h"
#include "agent/host/kernel_log.h"
#include "agent/host/proc_files.h"
#include "neuron_version.h"

namespace neuron::gather {
namespace {

using health::KernelLine;
using health::KernelLineKind;

std::string line_of(const health::KernelError& error) {
  std::string line = "NEURON_HW_ERR=" + error.name;
  if (error.device) line += " nd-id=" + std::to_string(*error.device);
  if (error.core) line += " nc-id=" + std::to_string(*error.core);
  if (error.serial) line += " serial-num=" + *error.serial;
  if (!error.action.empty()) line += " action=" + error.action;
  return line;
}

std::string line_of(const KernelLine& line) {
  switch (line.kind) {
    case KernelLineKind::error:
      return line_of(line.error);
    case KernelLineKind::malformed:
      return "NEURON_HW_ERR=";
    case KernelLineKind::driver_started:
      return "Neuron Driver Started with Version:";
    case KernelLineKind::device_found:
      return "** BDF:  => nd[" + std::to_string(line.device) + "] (routing id: ?)";
    case KernelLineKind::nothing:
      break;
  }
  return "";
}

constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20U;
constexpr std::size_t kMaxProcessBytes = std::size_t{256} << 10U;
constexpr std::size_t kMaxProcesses = 1024;
constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 20U;
constexpr std::string_view kNeuronClass = "sys/class/neuron_device";

std::string below(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : folder + '/' + std::string(name);
}

bool is_wildcard(std::string_view component) {
  return component.find_first_of("*#") != std::string_view::npos;
}

// The message less the path it starts with.
std::string_view reason_of(const std::string& path, const Error& error) {
  std::string_view reason = error.message;
  if (reason.starts_with(path + ": ")) reason.remove_prefix(path.size() + 2);
  return reason;
}

bool is_kernel_entry(std::string_view name) {
  const auto entries = kernel_entries();
  return std::ranges::find(entries, name) != entries.end();
}

// NEURON_PROCESS_TAG with its value and terminator; "" when the process has none.
std::string tag_of(std::string_view environ) {
  constexpr std::string_view kName = "NEURON_PROCESS_TAG=";
  while (!environ.empty()) {
    const std::string_view variable = environ.substr(0, environ.find('\0'));
    if (variable.starts_with(kName)) return std::string(variable) + '\0';
    environ.remove_prefix(std::min(variable.size() + 1, environ.size()));
  }
  return "";
}

// The file neuron-ioctl/neuron<N>.json (docs/fixtures.md): host::parse_recorded_answers reads the same answers from it.
// Unanswered members are left out.
std::string driver_answers_json(const host::DriverAnswers& answers) {
  auto json = nlohmann::ordered_json::object();
  if (answers.bdf) json["bdf"] = model::to_string(*answers.bdf);
  if (answers.processes) {
    json["apps"] = nlohmann::ordered_json::array();
    for (const model::Process& process : *answers.processes) {
      auto& app = json["apps"].emplace_back(nlohmann::ordered_json{{"pid", process.pid}});
      if (process.core_mask) app["nc_lock_map"] = *process.core_mask;
      if (process.host_memory_bytes) app["host_mem_bytes"] = *process.host_memory_bytes;
      if (process.device_memory_bytes) app["device_mem_bytes"] = *process.device_memory_bytes;
    }
  }
  if (answers.logical_to_physical) json["logical_to_physical"] = *answers.logical_to_physical;
  return json.dump() + '\n';
}

// The Neuron hardware records of the kernel log below `root` (docs/fixtures.md#the-kernel-log), rebuilt from the parsed
// fields of each line: no other line, no host name and no instance id is captured. The newest 4096 records at most.
// Errors: as of host::KernelLogReader.
Result<std::string> kernel_log_text(const host::FsRoot& root) {
  constexpr std::size_t kMaxLines = 4096;
  std::deque<std::string> lines;
  std::uint64_t next_number = 1;  // of records that have none
  const auto see = [&](const health::KernelRecord& record) {
    const std::string line = line_of(health::parse_kernel_line(record.text));
    if (line.empty()) return;
    const std::uint64_t number = record.sequence != 0 ? record.sequence : next_number++;
    lines.push_back("3," + std::to_string(number) + ',' + std::to_string(record.time.count()) + ",-;" + line + '\n');
    if (lines.size() > kMaxLines) lines.pop_front();
  };
  host::KernelLogReader log(root);
  for (;;) {
    TRY_ASSIGN(const auto part, log.open());
    if (part == host::KernelLogReader::Part::news) break;
    TRY(log.read(see));
    if (part == host::KernelLogReader::Part::everything) break;
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

void Collector::note(const std::string& path, const Error& error) {
  if (host::is_absent(error)) return;
  capture_.add_unreadable(path, reason_of(path, error));
}

bool Collector::permitted(const std::string& path) {
  if (permit_(path)) return true;
  capture_.add_unreadable(path, "did not answer in time");
  return false;
}

// Follows and captures a link at `path`; the folder of `path` is resolved already.
Collector::Node Collector::resolve(const std::string& path) {
  if (const auto known = resolved_.find(path); known != resolved_.end()) return known->second;
  const auto target = root_.read_link(path);
  if (!target) {
    if (target.error().code == ErrorCode::invalid_argument) return {path, true};
    note(path, target.error());
    return {path, false};
  }
  Node node{path, false};
  const auto real = root_.real_path(path);
  if (!real) {
    note(path, real.error());
  } else if (path.starts_with("sys/") && !real->starts_with("sys/")) {
    capture_.add_unreadable(path, "a link that leads out of sys");
  } else {
    node = {*real, true};
    capture_.add_link(path, *real, *target);
  }
  resolved_.emplace(path, node);
  return node;
}

const std::vector<std::string>& Collector::names_in(const std::string& folder) {
  const auto [at, is_new] = folders_.try_emplace(folder);
  if (!is_new) return at->second;
  auto names = root_.list(folder);
  if (names) {
    at->second = *std::move(names);
  } else if (names.error().os_errno != ENOTDIR) {
    note(folder, names.error());
  }
  return at->second;
}

void Collector::collect(const Rule& rule) {
  expand("", rule.path, rule.take);
}

void Collector::expand(const std::string& folder, std::string_view rest, Take how) {
  const auto slash = rest.find('/');
  const std::string_view component = rest.substr(0, slash);
  const bool last = slash == std::string_view::npos;
  std::vector<std::string> names{std::string(component)};
  if (is_wildcard(component)) {
    names = names_in(folder);
    std::erase_if(names, [&](const std::string& name) { return !matches(component, name); });
  }
  for (const std::string& name : names) {
    const Node node = resolve(below(folder, name));
    if (!node.exists) continue;
    if (last)
      take(node.path, how);
    else
      expand(node.path, rest.substr(slash + 1), how);
  }
}

void Collector::take(const std::string& path, Take how) {
  if (capture_.full() || !permitted(path)) return;
  switch (how) {
    case Take::text:
      return take_text(path, kMaxTextBytes);
    case Take::large:
      return take_text(path, kMaxLargeBytes);
    case Take::config:
      return take_config(path);
    case Take::node:
      return capture_.add_file(path, "");
    case Take::tree:
      return take_tree(path, 0);
    case Take::folder:
      return capture_.add_folder(path);
    case Take::kernel_log:
      return take_kernel_log(path);
    case Take::containerd:
      return take_containerd(path);
  }
}

void Collector::take_text(const std::string& path, std::size_t max_bytes) {
  if (capture_.contains(path)) return;
  auto text = root_.read_file(path, max_bytes);
  if (text) return capture_.add_file(path, *std::move(text));
  // A name that a rule leaves open may be a folder.
  if (text.error().os_errno == EISDIR) return;
  note(path, text.error());
}

void Collector::take_config(const std::string& path) {
  if (capture_.contains(path)) return;
  // Root may read 4096 bytes; the header and the first capabilities are enough for every reader.
  auto bytes = root_.read_file(path, 4096);
  if (!bytes) return note(path, bytes.error());
  bytes->resize(std::min(bytes->size(), kConfigBytes));
  capture_.add_file(path, *std::move(bytes));
}

void Collector::take_kernel_log(const std::string& path) {
  auto text = kernel_log_text(root_);
  if (!text) return note(path, text.error());
  capture_.add_file(path, *std::move(text));
}

void Collector::take_containerd(const std::string& path) {
  const auto text = root_.read_file(path, kMaxProcessBytes);
  if (!text) return note(path, text.error());
  std::string kept;
  for (const std::string_view line : split(*text, '\n')) {
    const std::string_view key = trim(line.substr(0, line.find('=')));
    if (key == "version" || key == "enable_cdi") kept.append(trim(line.substr(0, line.find('#')))).append("\n");
  }
  capture_.add_file(path, std::move(kept));
}

void Collector::take_tree(const std::string& folder, std::size_t depth) {
  if (depth >= kMaxTreeDepth) return capture_.add_unreadable(folder, "nested too deeply");
  const auto names = root_.list(folder);
  if (!names) return note(folder, names.error());
  capture_.add_folder(folder);
  for (const std::string& name : *names) {
    if (depth == 0 && is_kernel_entry(name)) continue;
    const std::string path = below(folder, name);
    if (capture_.full() || !permitted(path)) continue;
    const Node node = resolve(path);
    if (!node.exists || node.path != path) continue;  // the target of a link has a rule of its own
    const auto inner = root_.list(path);
    if (inner)
      take_tree(path, depth + 1);
    else if (inner.error().os_errno == ENOTDIR)
      take_text(path, kMaxTextBytes);
    else
      note(path, inner.error());
  }
}

std::vector<int> Collector::captured_devices() const {
  std::vector<int> devices;
  const std::string prefix = std::string(kNeuronClass) + '/';
  const auto& entries = capture_.entries();
  for (auto at = entries.lower_bound(prefix); at != entries.end() && at->first.starts_with(prefix); ++at) {
    if (const auto index = host::device_index_of(std::string_view(at->first).substr(prefix.size()))) {
      devices.push_back(*index);
    }
  }
  return devices;
}

void Collector::collect_driver_answers() {
  for (const int index : captured_devices()) {
    const std::string path = "neuron-ioctl/neuron" + std::to_string(index) + ".json";
    if (!permitted(path)) continue;
    if (!root_.is_live()) {
      take_text(path, kMaxAnswerBytes);
      continue;
    }
    const host::DriverAnswers answers = host::query_driver(root_, index);
    if (answers.bdf || answers.processes || answers.logical_to_physical) {
      capture_.add_file(path, driver_answers_json(answers));
    } else {
      capture_.add_unreadable(
          path, "the driver did not answer (needs root and access to /dev/neuron" + std::to_string(index) + ')');
    }
  }
}

// The pids of the users.
std::vector<int> Collector::take_device_users(const std::vector<int>& devices) {
  if (devices.empty() || !permitted("proc")) return {};
  const auto found = host::find_device_users(root_);
  if (!found) {
    note("proc/1/fd", found.error());
    return {};
  }
  if (found->gap.empty())
    capture_.add_folder("proc/1/fd");
  else
    capture_.add_unreadable("proc", found->gap);
  std::vector<int> pids;
  for (const host::DeviceUser& user : found->users) {
    if (!std::ranges::binary_search(devices, user.device)) continue;
    const std::string process = "proc/" + std::to_string(user.pid);
    const std::string file = std::to_string(user.file);
    capture_.add_link(process + "/fd/" + file, "dev/neuron" + std::to_string(user.device), "");
    take_text(process + "/fdinfo/" + file, kMaxTextBytes);
    pids.push_back(user.pid);
  }
  return pids;
}

void Collector::take_process(int pid, Commands commands) {
  const std::string folder = "proc/" + std::to_string(pid);
  take_text(folder + "/stat", kMaxTextBytes);
  take_text(folder + "/statm", kMaxTextBytes);
  if (commands == Commands::leave_out) return;
  take_text(folder + "/cmdline", kMaxProcessBytes);
  if (const auto environ = root_.read_file(folder + "/environ", kMaxProcessBytes)) {
    if (std::string tag = tag_of(*environ); !tag.empty()) capture_.add_file(folder + "/environ", std::move(tag));
  } else {
    note(folder + "/environ", environ.error());
  }
}

void Collector::collect_processes(Commands commands) {
  std::vector<int> devices = captured_devices();
  std::ranges::sort(devices);
  const std::vector<int> users = take_device_users(devices);
  std::set<int> pids(users.begin(), users.end());
  for (const int index : devices) {
    const Entry* file = capture_.find("neuron-ioctl/neuron" + std::to_string(index) + ".json");
    if (file == nullptr) continue;
    const auto answers = host::parse_recorded_answers(file->text, "");
    if (!answers.processes) continue;
    for (const model::Process& process : *answers.processes) pids.insert(process.pid);
  }
  std::size_t taken = 0;
  for (const int pid : pids) {
    if (++taken > kMaxProcesses) break;
    if (permitted("proc/" + std::to_string(pid))) take_process(pid, commands);
  }
}

std::string captured_text(const Capture& capture, const std::string& path) {
  const Entry* entry = capture.find(path);
  return entry == nullptr ? "" : printable(trim(entry->text), 64);
}

Capture gather(const host::FsRoot& root, const GatherRequest& request, const Collector::Permit& permit) {
  Capture capture;
  Collector collector(root, capture, permit);
  for (const Rule& rule : rules()) collector.collect(rule);
  collector.collect_driver_answers();
  collector.collect_processes(request.commands);
  if (request.identity == Identity::anonymise) anonymise(capture);

  Manifest manifest;
  manifest.tool_version = kVersion;
  manifest.captured_at = utc_text(request.now);
  manifest.instance_type = captured_text(capture, kProductName);
  manifest.kernel = captured_text(capture, "proc/sys/kernel/osrelease");
  manifest.origin = root.is_live() ? Origin::live : Origin::directory;
  manifest.with_commands = request.commands == Commands::include;
  manifest.anonymised = request.identity == Identity::anonymise;
  manifest.complete = !capture.full();
  std::optional<std::string> previous;
  if (!root.is_live()) {
    if (auto text = root.read_file(kManifestPath, kMaxManifestBytes)) previous = *std::move(text);
  }
  capture.add_file(kManifestPath, manifest_text(manifest, capture, previous));
  return capture;
}

}  // namespace neuron::gather
