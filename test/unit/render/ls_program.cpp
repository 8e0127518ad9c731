#include "test/unit/render/ls_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::test {
namespace {

namespace fs = std::filesystem;

// A simulated machine has up to 25000 files: memory makes them in a blink, a disk may take ten seconds.
fs::path fast_directory() {
  const fs::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
}

}  // namespace

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void LsProgram::SetUp() {
  std::string pattern = (fast_directory() / "neuron-ls-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  directory_ = pattern;
  ::unsetenv("NO_COLOR");
  for (const char* name : {"ROOT", "OUTPUT_FORMAT", "HEALTH", "EFA", "PODS", "DEVICE", "WATCH", "KUBELET_DIR"}) {
    ::unsetenv((std::string("NEURON_LS_") + name).c_str());
  }
}

void LsProgram::TearDown() {
  fs::remove_all(directory_);
}

void LsProgram::simulate(const sim::HostPlan& plan) const {
  const auto written = sim::write_host(plan, host().string());
  ASSERT_TRUE(written) << written.error().message;
}

void LsProgram::simulate(const std::string& type, const std::string& driver) const {
  sim::HostPlan plan;
  plan.instance_type = type;
  plan.driver_version = driver;
  simulate(plan);
}

void LsProgram::set(const std::string& target, const std::string& action, const std::string& key) const {
  std::vector<std::string> actions = {action};
  if (!key.empty()) actions.push_back(key);
  const auto done = sim::apply_fault(host().string(), target, actions);
  ASSERT_TRUE(done) << done.error().message;
}

void LsProgram::write(const std::string& path, const std::string& text) const {
  fs::create_directories((host() / path).parent_path());
  std::ofstream(host() / path, std::ios::binary) << text;
}

void LsProgram::occupy(const std::vector<int>& devices) const {
  const auto command_of = [](int pid) { return "proc/" + std::to_string(pid) + "/cmdline"; };
  for (const int device : devices) {
    const fs::path answer = host() / "neuron-ioctl" / ("neuron" + std::to_string(device) + ".json");
    auto record_of = nlohmann::json::parse(text_of(answer));
    record_of["apps"] = {
        {{"pid", 4290 + device}, {"nc_lock_map", 3}, {"host_mem_bytes", 16384}, {"device_mem_bytes", 1782579}},
        {{"pid", 512}, {"nc_lock_map", 0}, {"host_mem_bytes", 0}, {"device_mem_bytes", 0}}};
    record(device, record_of);
    using namespace std::string_literals;
    write(command_of(4290 + device), "python3\0train.py\0--rank\0"s + std::to_string(device) + "\0--model\0bert\0"s);
    write(command_of(512), "neuron-monitor\0"s);
  }
}

Outcome LsProgram::run_raw(const std::string& arguments, const std::string& environment) const {
  const std::string command = environment + ' ' + program() + ' ' + arguments + " >" + (directory_ / "out").string() +
                              " 2>" + (directory_ / "err").string() + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(directory_ / "out"), text_of(directory_ / "err")};
}

void LsProgram::record(int device, const nlohmann::json& answer) const {
  std::ofstream(host() / "neuron-ioctl" / ("neuron" + std::to_string(device) + ".json")) << answer;
}

}  // namespace neuron::test
