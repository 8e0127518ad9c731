#include "agent/host/ultraserver.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/base/parse.h"
#include "agent/host/problems.h"

namespace neuron::host {
namespace {

constexpr std::string_view kClass = "sys/class/neuron_device/";
constexpr std::string_view kBusy = "busy";

bool is_no_value(std::string_view text) {
  return text.empty() || text == kBusy || text == "invalid";
}

class Files {
 public:
  Files(const FsRoot& root, UltraServerTexts& last, std::vector<model::ReadProblem>& problems)
      : root_(root), last_(last), problems_(problems) {}

  // nullopt when it is not there, or cannot be read and never was.
  [[nodiscard]] std::optional<std::string> text(const std::string& path) {
    auto read = root_.read_attribute(path);
    if (read) return last_[path] = *std::move(read);
    if (is_absent(read.error())) {
      last_.erase(path);
      return std::nullopt;
    }
    model::ReadProblem problem = problem_with(path, read.error());
    const auto last = last_.find(path);
    if (last != last_.end()) problem.detail += "; what was read last stands";
    note_problem(problems_, kMaxHostProblems, std::move(problem));
    return last == last_.end() ? std::nullopt : std::optional(last->second);
  }

  // nullopt when it has no text, says that there is none, or cannot be understood.
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
  std::vector<model::ReadProblem>& problems_;
};

void add_membership(Files& files, int nodes, const std::string& server_file, const std::string& node_file,
                    model::UltraServer& ultraserver) {
  const auto server = files.value<std::string>(server_file, parse_server_id);
  const auto node = files.value<int>(node_file, parse_node_id);
  if (server && node) ultraserver.memberships.push_back({nodes, *server, *node});
}

}  // namespace

Result<std::vector<int>> parse_ultraserver_modes(std::string_view text) {
  constexpr int kMaxMode = 15;
  std::vector<int> modes;
  text = trim(text);
  if (text.empty()) return modes;
  for (const std::string_view part : split(text, ',')) {
    const auto mode = parse_int(part, 0, kMaxMode);
    if (!mode) {
      return fail(ErrorCode::data_corrupt, "not a list of UltraServer modes: \"" + printable(text, 40) + "\"");
    }
    if (*mode != 0) modes.push_back(*mode);
  }
  std::sort(modes.begin(), modes.end());
  modes.erase(std::unique(modes.begin(), modes.end()), modes.end());
  return modes;
}

Result<std::optional<std::string>> parse_server_id(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  text = trim(text);
  if (is_no_value(text)) return std::optional<std::string>();
  if (text.size() != kDigits || text.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
    return fail(ErrorCode::data_corrupt, "not 16 hexadecimal digits: \"" + printable(text, 40) + "\"");
  }
  if (text.find_first_not_of('0') == std::string_view::npos) return std::optional<std::string>();
  std::string id(text);
  std::transform(id.begin(), id.end(), id.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::optional(std::move(id));
}

Result<std::optional<int>> parse_node_id(std::string_view text) {
  constexpr int kMaxNode = 1023;
  text = trim(text);
  if (is_no_value(text) || text == "-1") return std::optional<int>();
  const auto node = parse_int(text, 0, kMaxNode);
  if (!node) return fail(ErrorCode::data_corrupt, "not a number from -1 to 1023: \"" + printable(text, 40) + "\"");
  return std::optional(*node);
}

std::optional<model::UltraServer> read_ultraserver(const FsRoot& root, UltraServerTexts& last,
                                                   std::vector<model::ReadProblem>& problems) {
  Files files(root, last, problems);
  const std::string path = std::string(kClass) + "ultraserver_mode";
  const auto text = files.text(path);
  if (!text) return std::nullopt;
  model::UltraServer ultraserver;
  ultraserver.busy = trim(*text) == kBusy;
  auto modes = ultraserver.busy ? Result<std::vector<int>>() : parse_ultraserver_modes(*text);
  if (modes) {
    ultraserver.modes = *std::move(modes);
  } else {
    note_problem(problems, kMaxHostProblems, problem_with(path, modes.error()));
  }
  ultraserver.partition_nodes = files.value<int>("node_cnt", parse_node_id);
  if (const int nodes = ultraserver.partition_nodes.value_or(0); nodes != 1) {  // of one: linked with no other
    add_membership(files, nodes, "reservation_id", "node_id", ultraserver);
  }
  for (const int nodes : {2, 4}) {
    const std::string suffix = "_" + std::to_string(nodes);
    add_membership(files, nodes, "server_id" + suffix, "node_id" + suffix, ultraserver);
  }
  return ultraserver;
}

}  // namespace neuron::host
