// What the driver's own code makes in sysfs (test/fixtures/driver-trees, docs/fixtures.md#trees-of-the-driver), held
// against what neuron-sim writes for the same driver and type, and read back as a host.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "agent/base/parse.h"
#include "agent/health/assess.h"
#include "agent/host/scanner.h"
#include "agent/host/usage_reader.h"
#include "agent/model/health.h"
#include "test/fakes/paths.h"
#include "test/unit/host/temp_tree.h"
#include "test/unit/sim/files.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;
using host::TempTree;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kFolder = fakes::source_dir() + "/test/fixtures/driver-trees";
constexpr const char* kClass = "sys/class/neuron_device/";
constexpr const char* kDevices = "sys/devices/virtual/neuron_device/";
constexpr const char* kParameters = "sys/module/neuron/parameters/";

struct File {
  unsigned mode = 0;
  std::optional<std::string> text;  // nullopt: not recorded
};

struct DriverTree {
  std::string driver;
  std::string type;
  std::string state;  // idle, busy (an election goes on), election-over, in-reset, off-the-bus
  std::vector<int> devices;
  std::vector<int> cores;             // physical ones of each device
  std::map<std::string, File> files;  // by path below the root
};

// "a/{b,c}/d" -> "a/b/d", "a/c/d".
std::vector<std::string> expanded(const std::string& path) {
  const auto open = path.find('{');
  if (open == std::string::npos) return {path};
  const auto close = path.find('}', open);
  std::vector<std::string> all;
  for (const auto word : split(std::string_view(path).substr(open + 1, close - open - 1), ',')) {
    for (auto& rest : expanded(path.substr(close + 1))) {
      all.push_back(path.substr(0, open).append(word).append(rest));
    }
  }
  return all;
}

std::string unescaped(std::string text) {
  for (auto at = text.find("\\n"); at != std::string::npos; at = text.find("\\n")) text.replace(at, 2, "\n");
  return text;
}

// Where the files of "class", "device", "device:3", "core", "core:1-7" lie.
std::vector<std::string> folders_of(const DriverTree& tree, const std::string& scope) {
  if (scope == "class") return {kClass};
  if (scope == "module") return {kParameters};
  const auto colon = scope.find(':');
  const bool of_core = scope.starts_with("core");
  std::optional<std::vector<int>> some;
  if (colon != std::string::npos) some = *parse_int_list(scope.substr(colon + 1), 63);
  std::vector<std::string> folders;
  for (const int device : some && !of_core ? *some : tree.devices) {
    const std::string folder = kDevices + ("neuron" + std::to_string(device)) + "/";
    if (!of_core) {
      folders.push_back(folder);
      continue;
    }
    for (const int core : some ? *some : tree.cores) {
      folders.push_back(folder + "neuron_core" + std::to_string(core) + "/");
    }
  }
  return folders;
}

DriverTree load(const std::string& name) {
  DriverTree tree;
  std::ifstream file(kFolder + "/" + name + ".txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string scope, mode, path, text;
    words >> scope >> mode;
    if (scope == "#") continue;
    if (scope == "driver") tree.driver = mode;
    if (scope == "type") tree.type = mode;
    if (scope == "state") tree.state = mode;
    if (scope == "devices") tree.devices = *parse_int_list(mode, 63);
    if (scope == "cores") tree.cores = *parse_int_list(mode, 63);
    if (!(words >> path)) continue;
    words.get();
    std::getline(words, text);
    for (const std::string& folder : folders_of(tree, scope)) {
      for (const std::string& one : expanded(path)) {
        File& made = tree.files[folder + one];
        made.mode = static_cast<unsigned>(std::stoul(mode, nullptr, 8));
        if (scope != "module") made.text = unescaped(text);
      }
    }
  }
  return tree;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

// ---- What neuron-sim writes

// Numbers that the driver takes from the hardware or the firmware, and that a simulation makes up.
bool is_made_up(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name == "serial_number" || name.starts_with("fw_") || name == "healthcheck_heartbeat";
}

std::string shape_of(const std::string& text) {
  static const std::regex kHex("\\b[0-9a-f]{16}\\b");
  static const std::regex kNumber("-?[0-9]+(\\.[0-9]+)?");
  return std::regex_replace(std::regex_replace(text, kHex, "<hex>"), kNumber, "<n>");
}

// Path -> mode and text of all that a listing could name.
std::map<std::string, File> files_below(const std::string& root) {
  std::map<std::string, File> files;
  const auto take = [&](const fs::path& path) {
    files[path.string().substr(root.size() + 1)] = {testing::mode_of(path.string()), testing::text_of(path.string())};
  };
  for (const char* folder : {kClass, kParameters}) {
    for (const auto& entry : fs::directory_iterator(root + "/" + folder)) {
      if (entry.is_regular_file()) take(entry.path());
    }
  }
  const std::set<std::string> of_the_kernel = {"dev", "uevent"};
  for (fs::recursive_directory_iterator it(root + "/" + kDevices), end; it != end; ++it) {
    if (it.depth() == 1 && (it->path().filename() == "power" || it->is_symlink())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file() && !of_the_kernel.contains(it->path().filename().string())) {
      take(it->path());
    }
  }
  return files;
}

class DriverTrees : public ::testing::TestWithParam<std::string> {};

TEST_P(DriverTrees, SimulatedAsTheDriverMakesThem) {
  const DriverTree tree = load(GetParam());
  ASSERT_FALSE(tree.files.empty());
  HostPlan plan;
  plan.instance_type = tree.type;
  plan.driver_version = tree.driver;
  if (tree.state == "busy") plan.ultraserver = *parse_ultraserver("busy");
  if (tree.state == "election-over") plan.ultraserver = *parse_ultraserver("alone");
  const TempTree host{TempTree::Place::memory};
  const auto written = write_host(plan, host.path());
  ASSERT_TRUE(written) << written.error().message;
  const bool is_broken = tree.state == "in-reset" || tree.state == "off-the-bus";
  const auto made = files_below(host.path());
  for (const auto& [path, file] : tree.files) {
    const auto found = made.find(path);
    if (found == made.end()) {
      ADD_FAILURE() << "not simulated: " << path;
      continue;
    }
    EXPECT_EQ(found->second.mode, file.mode) << path;
    if (!file.text) continue;
    if (is_broken || is_made_up(path)) {
      const std::string text = *file.text == "<serial>\n" ? "0123456789abcdef\n" : *file.text;
      EXPECT_EQ(shape_of(*found->second.text), shape_of(text)) << path;
    } else {
      EXPECT_EQ(*found->second.text, *file.text) << path;
    }
  }
  for (const auto& [path, file] : made) {
    EXPECT_TRUE(tree.files.contains(path)) << "the driver has no " << path << ": " << *file.text;
  }
}

// ---- What a scan reads in it

void write_as_host(const DriverTree& tree, const TempTree& host) {
  const auto put = [&](const std::string& path, const std::string& text, unsigned mode) {
    fs::create_directories(fs::path(host.at(path)).parent_path());
    std::ofstream(host.at(path), std::ios::binary) << text;
    ::chmod(host.at(path).c_str(), mode);
  };
  put("sys/devices/virtual/dmi/id/product_name", tree.type + "\n", 0444);
  put("sys/module/neuron/version", tree.driver + "\n", 0444);
  for (const auto& [path, file] : tree.files) {
    constexpr std::string_view kName = "neuron";
    const std::size_t digits = std::string_view(kDevices).size() + kName.size();
    const int device = path.starts_with(kDevices) ? std::stoi(path.substr(digits)) : 0;
    std::string text = file.text.value_or(path.ends_with("nmetric_log_posts") ? "1\n" : "0\n");
    if (text == "<serial>\n") text = "19fcda00a00000" + std::to_string(device + 10) + "\n";
    put(path, text, file.mode);
  }
  for (const int device : tree.devices) {
    const std::string name = "neuron" + std::to_string(device);
    put("dev/" + name, "", 0666);
    fs::create_directories(host.at(kClass));
    fs::create_directory_symlink("../../devices/virtual/neuron_device/" + name, host.at(kClass + name));
  }
}

// The reason that the device has in that state, "" for a healthy one.
std::string expected_reason(const DriverTree& tree, int device) {
  if (tree.state == "in-reset") return std::string(model::reason::kResetting);
  return tree.state == "off-the-bus" && device == 3 ? std::string(model::reason::kReadsAllOnes) : "";
}

TEST_P(DriverTrees, ReadBackAsAHost) {
  const DriverTree tree = load(GetParam());
  const TempTree root_tree{TempTree::Place::memory};
  write_as_host(tree, root_tree);
  const host::FsRoot root = root_tree.root();
  const auto scan = host::Scanner(root, {.with_topology = false}).scan();
  EXPECT_THAT(scan.problems, IsEmpty());
  ASSERT_THAT(scan.devices, SizeIs(tree.devices.size()));
  health::AssessMemory memory;
  const auto node = health::assess(scan, memory, {});
  EXPECT_THAT(node.missing, IsEmpty());
  for (std::size_t i = 0; i < node.host.devices.size(); ++i) {
    const model::NeuronDevice& device = node.host.devices[i];
    EXPECT_THAT(device.problems, IsEmpty()) << device.index;
    EXPECT_THAT(device.cores, SizeIs(tree.cores.size())) << device.index;
    EXPECT_THAT(node.bases[i].unread, IsEmpty()) << device.index;
    const std::string reason = expected_reason(tree, device.index);
    EXPECT_EQ(device.health.state == model::HealthState::healthy, reason.empty())
        << device.index << ": " << device.health.sentence;
    EXPECT_EQ(device.health.reason, reason) << device.health.sentence;
  }
  ASSERT_EQ(scan.ultraserver.has_value(), tree.files.contains(std::string(kClass) + "ultraserver_mode"));
  if (scan.ultraserver) {
    EXPECT_EQ(scan.ultraserver->busy, tree.state == "busy");
    EXPECT_THAT(scan.ultraserver->memberships, IsEmpty());
  }
  // Before the first minute the driver has measured no power, whatever it says.
  const auto usage = host::UsageReader(root).read(scan, {}, SteadyTime{});
  for (const auto& device : usage.devices) EXPECT_EQ(device.power, std::nullopt) << device.index;
}

INSTANTIATE_TEST_SUITE_P(All, DriverTrees, ::testing::ValuesIn(all_names()), test_name);

}  // namespace
}  // namespace neuron::sim
