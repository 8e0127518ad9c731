#include "tools/neuron-sim/commands.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;

std::vector<std::string> runtime_variables() {
  std::vector<std::string> lines;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view line(*variable);
    if (line.starts_with("NEURON_RT_")) lines.push_back(printable(line));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

struct Node {
  std::string folder;
  std::string stem;
  std::optional<int> number;  // after the stem
};

Node node_of(const std::string& folder, const std::string& name) {
  const auto digits = name.find_last_not_of("0123456789") + 1;
  return {folder, name.substr(0, digits), parse_int(std::string_view(name).substr(digits), 0, 1 << 20)};
}

std::string path_of(const Node& node) {
  return "/dev/" + node.folder + node.stem + (node.number ? std::to_string(*node.number) : "");
}

// neuron10 after neuron2; devices first, then interfaces.
std::vector<Node> device_nodes(const std::string& root) {
  std::vector<Node> found;
  for (const std::string folder : {"", "infiniband/"}) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(root + "/dev/" + folder, error), end; !error && it != end;
         it.increment(error)) {
      Node node = node_of(folder, it->path().filename().string());
      if (!folder.empty() || (node.stem == "neuron" && node.number)) found.push_back(std::move(node));
    }
  }
  std::sort(found.begin(), found.end(), [](const Node& a, const Node& b) {
    return std::tie(a.folder, a.stem, a.number) < std::tie(b.folder, b.stem, b.number);
  });
  return found;
}

// Prints one line. False when it is a simulated device that may not be used.
bool show_node(const std::string& root, const Node& node, std::ostream& out) {
  const std::string path = path_of(node);
  out << printable(path) << "  ";
  struct stat info {};
  if (::stat((root + path).c_str(), &info) != 0) {
    out << std::strerror(errno) << "\n";
    return true;
  }
  if (!S_ISCHR(info.st_mode)) {
    out << "no device node\n";
    return true;
  }
  out << "character device " << major(info.st_rdev) << ":" << minor(info.st_rdev);
  if (info.st_rdev != makedev(1, 3)) {
    out << "\n";
    return true;
  }
  const Fd opened(::open((root + path).c_str(), O_RDWR | O_CLOEXEC));
  out << ", simulated, " << (opened.valid() ? "opens" : std::strerror(errno)) << "\n";
  return opened.valid();
}

}  // namespace

void add_show_command(CLI::App& app, int& exit_code) {
  auto root = std::make_shared<std::string>("/");
  auto* show = app.add_subcommand("show", "In a container: show its devices");
  show->add_option("--root", *root, "Look below this directory (default /)")->type_name("DIR");
  show->callback([root, &exit_code] { exit_code = run_show_command(*root, std::cout, std::cerr); });
}

int run_show_command(const std::string& root, std::ostream& out, std::ostream& errors) {
  const auto variables = runtime_variables();
  for (const auto& line : variables) out << line << "\n";
  const auto nodes = device_nodes(root);
  bool is_usable = true;
  for (const auto& node : nodes) is_usable = show_node(root, node, out) && is_usable;
  if (nodes.empty()) {
    errors << "neuron-sim: no device of Neuron or EFA in " << (std::filesystem::path(root) / "dev").string()
           << ": this container has none (a limit such as aws.amazon.com/neuron: 1 requests one)\n";
    return kExitFailed;
  }
  return is_usable ? kExitOk : kExitFailed;
}

}  // namespace neuron::sim
