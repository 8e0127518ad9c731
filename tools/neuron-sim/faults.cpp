#include "tools/neuron-sim/faults.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/host_plan.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

enum class Verb { assign, heal, vanish, off_bus, unbind, drop_node, remove, empty, garbage, huge, fifo, unreadable };

struct VerbName {
  Verb verb;
  std::string_view name;
  bool takes_key;
  std::string_view meaning;
};

constexpr VerbName kVerbs[] = {
    {Verb::heal, "heal", false, "undo everything done to the target; host: to all targets"},
    {Verb::vanish, "vanish", false, "neuron<N>, EFA: removed from the class directory and dev/"},
    {Verb::off_bus, "off-bus", false, "neuron<N>: present, but its registers read all ones"},
    {Verb::unbind, "unbind", false, "EFA: the function stays, its driver is unbound"},
    {Verb::drop_node, "drop-node", false, "neuron<N>, EFA: only the node in dev/ is removed"},
    {Verb::remove, "remove", true, "the file is removed"},
    {Verb::empty, "empty", true, "the file has no bytes"},
    {Verb::garbage, "garbage", true, "the file holds bytes that are not text"},
    {Verb::huge, "huge", true, "the file holds a megabyte of digits"},
    {Verb::fifo, "fifo", true, "replaced by a FIFO without a writer"},
    {Verb::unreadable, "unreadable", true, "replaced by a directory, so that reading fails"},
};

constexpr std::pair<TargetKind, std::string_view> kHeadings[] = {
    {TargetKind::host, "host"},
    {TargetKind::device, "neuron<N>"},
    {TargetKind::core, "neuron<N>/core<M>   (M = physical core)"},
    {TargetKind::efa, "an EFA interface by its RDMA name, e.g. rdmap16s25"},
};

struct Action {
  Verb verb = Verb::assign;
  std::string key;
  std::string value;
};

Result<std::vector<Action>> parse_actions(const std::vector<std::string>& words) {
  std::vector<Action> actions;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (const auto equals = word.find('='); equals != std::string::npos && equals > 0) {
      actions.push_back({Verb::assign, word.substr(0, equals), word.substr(equals + 1)});
      continue;
    }
    const auto* found = std::ranges::find(kVerbs, word, &VerbName::name);
    if (found == std::end(kVerbs)) {
      std::string message = "\"" + printable(word) + "\" is neither KEY=VALUE nor a verb:";
      for (const auto& entry : kVerbs) message += " " + std::string(entry.name);
      return fail(ErrorCode::invalid_argument, message);
    }
    if (found->takes_key && i + 1 == words.size()) {
      return fail(ErrorCode::invalid_argument, "\"" + word + "\" needs a KEY after it");
    }
    actions.push_back({found->verb, found->takes_key ? words[++i] : "", ""});
  }
  if (actions.empty()) return fail(ErrorCode::invalid_argument, "nothing to do: give KEY=VALUE or a verb");
  return actions;
}

// Applies actions to one target of one directory, under lock_host().
class Injector {
 public:
  explicit Injector(std::string dir) : dir_(std::move(dir)), saved_(dir_) {}

  [[nodiscard]] Result<void> apply(const std::string& target_name, const Action& action) const {
    if (action.verb == Verb::heal) return heal(target_name);
    TRY_ASSIGN(const FaultTarget target, find_target(dir_, target_name));
    switch (action.verb) {
      case Verb::vanish:
        return vanish(target);
      case Verb::unbind:
        return unbind(target);
      case Verb::drop_node:
        return drop_nodes(target);
      case Verb::off_bus:
        if (target.kind == TargetKind::device) return enter_state(target, "off-bus", "");
        return fail(ErrorCode::invalid_argument, "off-bus is for neuron<N>");
      default:
        return change_file(target, action);
    }
  }

 private:
  [[nodiscard]] std::string full(const std::string& path) const { return dir_ + "/" + path; }

  [[nodiscard]] Result<void> heal(const std::string& target_name) const {
    TRY_ASSIGN(const int count, saved_.restore(target_name));
    if (type_of(full(kKernelLogPath)) == fs::file_type::regular) {
      const std::string log = text_at(kKernelLogPath);
      const std::string kept = without_kernel_lines(log, target_name);
      if (kept != log) return put(kKernelLogPath, kept);
    }
    if (count == 0) {
      if (auto target = find_target(dir_, target_name); !target) return fail(std::move(target).error());
    }
    return {};
  }

  // Moves the existing ones of `paths` away, in that order.
  [[nodiscard]] Result<void> take_away(const FaultTarget& target, const std::vector<std::string>& paths) const {
    for (const auto& path : paths) {
      if (!path.empty() && is_there(full(path))) TRY(saved_.move_away(target.name, path));
    }
    return {};
  }

  [[nodiscard]] Result<void> vanish(const FaultTarget& target) const {
    if (target.kind != TargetKind::device && target.kind != TargetKind::efa) {
      return fail(ErrorCode::invalid_argument, "only neuron<N> and EFA interfaces can vanish");
    }
    TRY(take_away(target, target.links));
    TRY(take_away(target, target.nodes));
    return take_away(target, {target.answers, target.driver_link, target.bus_link, target.folder});
  }

  [[nodiscard]] Result<void> unbind(const FaultTarget& target) const {
    if (target.kind != TargetKind::efa) return fail(ErrorCode::invalid_argument, "unbind is for EFA interfaces");
    TRY(take_away(target, target.links));
    TRY(take_away(target, target.nodes));
    return take_away(target, {target.driver_link, target.folder + "/driver", target.folder + "/infiniband",
                              target.folder + "/infiniband_verbs"});
  }

  [[nodiscard]] Result<void> drop_nodes(const FaultTarget& target) const {
    if (target.nodes.empty()) return fail(ErrorCode::invalid_argument, target.name + " has no node in dev/");
    for (const auto& node : target.nodes) TRY(saved_.move_away(target.name, node));
    return {};
  }

  // The kernel log belongs to the host as a whole; healing the host brings the first one back.
  [[nodiscard]] Result<void> add_kernel_line(const FaultTarget& target, const Action& action) const {
    const auto type = type_of(full(kKernelLogPath));
    if (!is_folder(full("dev")) || (type != fs::file_type::regular && type != fs::file_type::not_found)) {
      return fail(ErrorCode::failed_precondition, full(kKernelLogPath) + " is not a regular file");
    }
    TRY(saved_.keep("host", kKernelLogPath));
    const std::string line = action.key == "hw_err" ? hardware_error_line(dir_, target, action.value) : action.value;
    return put(kKernelLogPath, with_kernel_line(text_at(kKernelLogPath), line));
  }

  [[nodiscard]] std::string text_at(const std::string& path) const {
    std::ifstream file(full(path));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // All class files of the state. Which ones exist depends on the driver's version.
  [[nodiscard]] Result<void> set_ultraserver(const FaultTarget& target, const Action& action) const {
    if (action.verb != Verb::assign) {
      return fail(ErrorCode::invalid_argument, "give ultraserver=VALUE, or a verb and ultraserver_mode");
    }
    TRY_ASSIGN(const UltraServerPlan plan, parse_ultraserver(action.value));
    static const std::string kClass = "sys/class/neuron_device/";
    std::error_code error;
    const bool is_partition = fs::exists(full(kClass + "node_cnt"), error);
    if (!is_partition && !fs::exists(full(kClass + "node_id_4"), error)) {
      return fail(ErrorCode::failed_precondition, "ultraserver is not part of this driver version or instance type");
    }
    const DriverGeneration driver{is_partition ? 30 : 29};  // before 2.30 the files are those by size on every platform
    const Platform platform = is_partition ? Platform::pds : Platform::ultraserver;
    for (const auto& [name, text] : ultraserver_files(platform, driver, plan)) {
      TRY(saved_.keep(target.name, kClass + name));
      TRY(put(kClass + name, text + "\n"));
    }
    return {};
  }

  // Replaces a file atomically; by something else for the verbs `fifo` and `unreadable`.
  [[nodiscard]] Result<void> put(const std::string& path, const std::string& text, Verb verb = Verb::assign) const {
    const std::string fresh = full(".neuron-sim/fresh");
    TRY(make_fresh(fresh, verb, text, mode_of(path)));
    std::error_code error;
    fs::create_directories(fs::path(full(path)).parent_path(), error);
    if (::rename(fresh.c_str(), full(path).c_str()) != 0) return fail(error_from_errno(errno, full(path)));
    return {};
  }

  [[nodiscard]] Result<std::string> text_of(const FaultTarget& target, const Action& action,
                                            const std::string& path) const {
    constexpr std::size_t kHugeBytes = std::size_t{1} << 20U;
    switch (action.verb) {
      case Verb::garbage:
        return "\xff\xfe\x00\x01\x80not a number\n\x1b[31m"s;
      case Verb::huge:
        return std::string(kHugeBytes, '9');
      case Verb::assign:
        break;
      default:
        return std::string();
    }
    const auto* key = find_fault_key(target.kind, action.key);
    if (key == nullptr) return action.value + "\n";
    if (key->name != "apps") return fmt::format(fmt::runtime(key->format), action.value);
    return with_processes(text_at(path), action.value);
  }

  // All files that show a state of the driver.
  [[nodiscard]] Result<void> enter_state(const FaultTarget& target, const std::string& key,
                                         const std::string& value) const {
    TRY_ASSIGN(const std::vector<StateFile> files, files_of_state(dir_, target, key, value));
    for (const StateFile& file : files) {
      if (!file.text) {
        TRY(saved_.move_away(target.name, file.path));
        continue;
      }
      TRY(saved_.keep(target.name, file.path));
      TRY(put(file.path, *file.text));
    }
    return {};
  }

  [[nodiscard]] Result<void> change_file(const FaultTarget& target, const Action& action) const {
    const auto* known = find_fault_key(target.kind, action.key);
    if (known != nullptr && (known->name == "hw_err" || known->name == "kernel_log")) {
      if (action.verb == Verb::assign) return add_kernel_line(target, action);
      return fail(ErrorCode::invalid_argument, "give " + known->name + "=VALUE, or a verb and " + kKernelLogPath);
    }
    if (known != nullptr && known->name == "hbm" && action.verb != Verb::assign) {
      return fail(ErrorCode::invalid_argument, "hbm stands for two files: give hbm=VALUE, or a verb and one of them");
    }
    if (action.verb == Verb::assign && is_driver_state(target.kind, action.key)) {
      return enter_state(target, action.key, action.value);
    }
    if (known != nullptr && known->name == "ultraserver") return set_ultraserver(target, action);
    TRY_ASSIGN(const std::string path, path_of_key(dir_, target, action.key));
    TRY_ASSIGN(const std::string text, text_of(target, action, path));
    if (const std::string folder = first_absent_folder(path); !folder.empty()) TRY(saved_.keep(target.name, folder));
    TRY(saved_.keep(target.name, path));
    if (action.verb == Verb::remove) return clear_place(path);
    if (action.verb == Verb::unreadable || is_folder(full(path))) TRY(clear_place(path));
    return put(path, text, action.verb);
  }

  // The topmost folder that must be made for `path`; "" when all are there.
  [[nodiscard]] std::string first_absent_folder(const std::string& path) const {
    for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      if (!is_there(full(path.substr(0, slash)))) return path.substr(0, slash);
    }
    return "";
  }

  [[nodiscard]] Result<void> clear_place(const std::string& path) const {
    std::error_code error;
    fs::remove_all(full(path), error);
    if (error) return fail(error_from_errno(error.value(), full(path)));
    return {};
  }

  [[nodiscard]] mode_t mode_of(const std::string& path) const {
    struct stat info {};
    const bool plain = ::lstat(full(path).c_str(), &info) == 0 && S_ISREG(info.st_mode);
    return plain ? info.st_mode & 07777U : mode_t{0444};
  }

  [[nodiscard]] static Result<void> make_fresh(const std::string& fresh, Verb verb, const std::string& text,
                                               mode_t mode) {
    std::error_code error;
    fs::remove_all(fresh, error);
    if (verb == Verb::unreadable || verb == Verb::fifo) {
      const int made = verb == Verb::fifo ? ::mkfifo(fresh.c_str(), 0644) : ::mkdir(fresh.c_str(), 0755);
      return made == 0 ? Result<void>() : fail(error_from_errno(errno, fresh));
    }
    std::ofstream(fresh, std::ios::binary) << text;
    if (::chmod(fresh.c_str(), mode) != 0) return fail(error_from_errno(errno, fresh));
    if (fs::file_size(fresh, error) != text.size()) return fail(ErrorCode::internal, fresh + ": not written whole");
    return {};
  }

  std::string dir_;
  SavedFiles saved_;
};

}  // namespace

std::string list_faults() {
  std::string text;
  for (const auto& [kind, heading] : kHeadings) {
    text += fmt::format("KEY=VALUE for {}\n", heading);
    for (const auto& key : fault_keys()) {
      if (key.kind == kind) text += fmt::format("  {:<34}{}\n", key.name, key.meaning);
    }
    text += "\n";
  }
  text += "Verbs, for every target unless noted otherwise\n";
  for (const auto& entry : kVerbs) {
    text += fmt::format("  {:<18}{}\n", fmt::format("{}{}", entry.name, entry.takes_key ? " KEY" : ""), entry.meaning);
  }
  return text +
         "KEY may also be a path below the target's folder (host: below the directory).\n"
         "VALUE is written verbatim, with a newline; \"\" gives an empty line.\n";
}

Result<void> apply_fault(const std::string& dir, const std::string& target, const std::vector<std::string>& actions) {
  TRY(require_simulated(dir));
  TRY_ASSIGN(const std::vector<Action> parsed, parse_actions(actions));
  TRY_ASSIGN(const Fd lock, lock_host(dir));
  const Injector injector(dir);
  for (const auto& action : parsed) TRY(injector.apply(target, action));
  return {};
}

}  // namespace neuron::sim
