#include "test/attack/stage.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "agent/core/catalogue.h"
#include "test/fakes/paths.h"
#include "test/fakes/sanitized.h"

namespace neuron::attack {
namespace {

using fakes::kCore;
using fakes::kEfa;
using fakes::kNeuron;
using std::chrono::milliseconds;

constexpr milliseconds kBack{15'000};   // after the end of an attack everything is as before
constexpr milliseconds kShown{10'000};  // a fault is in the kubelet's list
// Of test/fakes/faulty_io.cpp; a hang is what hurts most.
constexpr std::array kWays = {"hang", "hang", "eio", "deny", "garbage", "empty", "vanish", "huge", "short"};

std::string device_target(int device) {
  return "neuron" + std::to_string(device);
}

int logical_cores_of(const std::string& type_name) {
  const core::InstanceType* type = core::find_instance_type(type_name);
  return type == nullptr ? 1 : std::max(type->physical_cores_per_device / std::max(type->default_lnc, 1), 1);
}

}  // namespace

Stage::Stage(const std::string& instance_type, unsigned seed)
    : random_(seed), node_(instance_type), judge_(node_, logical_cores_of(instance_type)) {
  control_ = node_.kubelet_dir + "/faults";
  set_faults({});
  node_.host.write();
  node_.start_kubelet();
  start_agent();
  devices_ = core::find_instance_type(instance_type)->device_count;
  find_victims();
  std::set<std::string> resources;
  if (devices_ > 0) resources = {kNeuron, kCore};
  if (!efas_.empty()) resources.insert(kEfa);
  judge_.expect(std::move(resources));
  must_be_whole(kBack);
}

void Stage::start_agent() {
  node_.extra_environment = {"LD_PRELOAD=" + fakes::faulty_io(), "FAULTY_IO=" + control_,
                             fakes::sanitizer_allows_preload()};
  node_.start_agent();
}

void Stage::set_faults(const std::vector<std::string>& lines) {
  const std::string fresh = control_ + ".new";
  {
    std::ofstream file(fresh);
    for (const std::string& line : lines) file << line << '\n';
  }
  std::filesystem::rename(fresh, control_);
}

namespace {

// What nobody reads is left alone, since nothing can come of it.
bool is_read(const std::string& path) {
  const auto has = [&](const char* part) { return path.find(part) != std::string::npos; };
  const auto ends = [&](const char* end) { return path.ends_with(end); };
  if (ends("/present") || ends("/peak") || has("/other_info/") || has("/power/") || has("/host_mem/")) return false;
  if (has("/stats/status/")) return has("/hw_");
  return !has("/device_mem/") || ends("/device_mem/total");
}

}  // namespace

// Files and folders below sys/ that have to do with Neuron or EFA, and a few of the whole host.
void Stage::find_victims() {
  namespace fs = std::filesystem;
  const fs::path root = node_.host.path();
  const auto add_tree = [&](const fs::path& top, Victim like) {
    std::error_code error;
    for (fs::recursive_directory_iterator entry(top, error), end; !error && entry != end; entry.increment(error)) {
      like.path = entry->path().string();
      if (is_read(like.path)) victims_.push_back(like);
    }
  };
  for (int device = 0; device < devices_; ++device) {
    add_tree(root / "sys/devices/virtual/neuron_device" / device_target(device), {"", device, ""});
  }
  std::error_code error;
  for (fs::directory_iterator entry(root / "sys/class/infiniband", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    efas_.push_back(name);
    add_tree(fs::canonical(entry->path()), {"", -1, name});
  }
  for (const char* path :
       {"sys/class/neuron_device", "sys/devices/virtual/dmi/id/product_name", "sys/module/neuron/version",
        "sys/bus/pci/devices", "opt/aws/neuron/logical_nc_config", "sys/class/infiniband", "sys/class/infiniband_verbs",
        "sys/devices/system/node/online", "sys/devices/system/cpu/online", "proc/cpuinfo", "proc/meminfo"}) {
    victims_.push_back({(root / path).string(), -1, ""});
  }
}

void Stage::hold(milliseconds time) {
  static_cast<void>(node_.kubelet->wait_for([] { return false; }, time));
}

void Stage::must_be_whole(milliseconds within) {
  if (!node_.kubelet->wait_for([&] { return judge_.whole(); }, within)) {
    judge_.complain("not whole again after " + std::to_string(within.count()) + " ms:\n" + judge_.state());
  }
}

// What pods have just given back may be withheld for a moment longer.
void Stage::only_these_may_suffer(const std::set<int>& devices, const std::set<std::string>& efas) {
  if (node_.kubelet->wait_for([&] { return judge_.complaints_of(devices, efas).empty(); }, kBack)) return;
  for (const std::string& complaint : judge_.complaints_of(devices, efas)) judge_.complain(complaint);
}

void Stage::must_suffer(const std::string& resource, const std::string& id, milliseconds within) {
  const auto suffers = [&] { return node_.kubelet->resource_view(resource).unhealthy.contains(id); };
  if (!node_.kubelet->wait_for(suffers, within)) {
    judge_.complain(resource + " " + id + " is broken and still offered after " + std::to_string(within.count()) +
                    " ms");
  }
}

int Stage::sound_device(int except) {
  if (devices_ < 2) return -1;
  const int other = random(devices_ - 1);
  return other >= except && except >= 0 ? other + 1 : other;
}

void Stage::pods_come_and_go() {
  if (!pods_.empty() && (pods_.size() > 5 || random(2) == 0)) {
    const auto which = static_cast<std::size_t>(random(static_cast<int>(pods_.size())));
    static_cast<void>(node_.kubelet->remove(pods_[which]));
    pods_.erase(pods_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  const std::string name = "pod" + std::to_string(++pods_made_);
  std::map<std::string, int> requests;
  if (devices_ > 0) requests[random(2) == 0 ? kCore : kNeuron] = 1 + random(4);
  if (!efas_.empty() && random(2) == 0) requests[kEfa] = 1 + random(2);
  if (node_.run(name, requests)) pods_.push_back(name);
  judge_.nothing_twice();
}

void Stage::fault_in_a_file() {
  const Victim victim = victims_[static_cast<std::size_t>(random(static_cast<int>(victims_.size())))];
  const std::string way = kWays[static_cast<std::size_t>(random(static_cast<int>(kWays.size())))];
  last_ = way + " " + victim.path.substr(node_.host.path().size());
  set_faults({way + " " + victim.path});
  const bool whole_host = victim.device < 0 && victim.efa.empty();
  std::set<int> broken;
  if (victim.device >= 0) broken.insert(victim.device);
  if (const int other = sound_device(victim.device); other >= 0 && !whole_host && random(2) == 0) {
    last_ += ", and an ECC error on " + device_target(other);
    node_.host.set(device_target(other), "sram_ecc_uncorrected=1");
    broken.insert(other);
    must_suffer(kNeuron, std::to_string(other), kShown);
  }
  if (random(2) == 0) pods_come_and_go();
  hold(milliseconds(random(4000)));
  if (!whole_host) only_these_may_suffer(broken, victim.efa.empty() ? std::set<std::string>{} : std::set{victim.efa});
  judge_.alive_and_bounded();
  set_faults({});
  for (const int device : broken) node_.host.set(device_target(device), "heal");
}

void Stage::several_faults_at_once() {
  std::vector<std::string> lines;
  std::set<int> broken;
  std::set<std::string> efas;
  last_ = "several:";
  for (int i = 0; i < 4; ++i) {
    const Victim victim = victims_[static_cast<std::size_t>(random(static_cast<int>(victims_.size())))];
    if (victim.device < 0 && victim.efa.empty()) continue;
    if (victim.device >= 0) broken.insert(victim.device);
    if (!victim.efa.empty()) efas.insert(victim.efa);
    lines.push_back(std::string(kWays[static_cast<std::size_t>(random(static_cast<int>(kWays.size())))]) + " " +
                    victim.path);
    last_ += " " + lines.back().substr(0, lines.back().find(' ')) + " " + victim.path.substr(node_.host.path().size());
  }
  set_faults(lines);
  hold(milliseconds(2500 + random(4000)));
  only_these_may_suffer(broken, efas);
  judge_.alive_and_bounded();
  if (random(3) == 0) {
    last_ += "; SIGTERM meanwhile";
    node_.agent->signal(SIGTERM);
    if (!node_.agent->wait(milliseconds(4000))) judge_.complain("SIGTERM did not end the agent within 4 s");
    set_faults({});
    start_agent();
  }
  set_faults({});
}

void Stage::change_in_mid_read() {
  if (devices_ == 0) return;
  const int device = random(devices_);
  last_ = "device " + std::to_string(device) + " leaves and comes back forty times";
  for (int i = 0; i < 40; ++i) {
    node_.host.set(device_target(device), "vanish");
    hold(milliseconds(random(20)));
    node_.host.set(device_target(device), "heal");
  }
  only_these_may_suffer({device}, {});
}

void Stage::device_leaves() {
  if (devices_ == 0) return;
  const int device = random(devices_);
  last_ = "device " + std::to_string(device) + " leaves";
  node_.host.set(device_target(device), "vanish");
  must_suffer(kNeuron, std::to_string(device), kShown);
  pods_come_and_go();
  only_these_may_suffer({device}, {});
  if (random(2) == 0) agent_is_killed();
  node_.host.set(device_target(device), "heal");
}

void Stage::driver_reloads() {
  if (devices_ == 0) return;
  last_ = "the driver is reloaded";
  const int cores = node_.kubelet->capacity(kCore);
  for (int device = 0; device < devices_; ++device) node_.host.set(device_target(device), "vanish");
  const auto all_gone = [&] { return node_.kubelet->allocatable(kNeuron) == 0; };
  if (!node_.kubelet->wait_for(all_gone, kShown)) judge_.complain("devices without a driver are offered");
  hold(milliseconds(500));
  if (node_.kubelet->capacity(kCore) != cores)
    judge_.complain("cores left the list with the driver:\n" + judge_.state());
  for (int device = devices_ - 1; device >= 0; --device) node_.host.set(device_target(device), "heal");
}

void Stage::interface_leaves() {
  if (efas_.empty()) return;
  const std::string efa = efas_[static_cast<std::size_t>(random(static_cast<int>(efas_.size())))];
  last_ = efa + " leaves";
  node_.host.set(efa, random(2) == 0 ? "vanish" : "unbind");
  must_suffer(kEfa, efa, kShown);
  pods_come_and_go();
  only_these_may_suffer({}, {efa});
  node_.host.set(efa, "heal");
}

void Stage::kubelet_restarts() {
  last_ = "the kubelet restarts";
  const int times = 1 + random(3);
  for (int i = 0; i < times; ++i) {
    if (!node_.kubelet->restart()) judge_.complain("the kubelet stand-in did not restart");
    hold(milliseconds(random(200)));
  }
}

void Stage::stream_is_cut() {
  last_ = "the kubelet cuts a stream";
  static_cast<void>(node_.kubelet->drop_client(random(2) == 0 ? kNeuron : kCore));
}

void Stage::agent_is_killed() {
  last_ += " [the agent is killed]";
  node_.agent->signal(SIGKILL);
  static_cast<void>(node_.agent->wait(kBack));
  start_agent();
}

void Stage::agent_is_stopped() {
  last_ = "the agent stands still for a second";
  node_.agent->signal(SIGSTOP);
  hold(milliseconds(1000));
  node_.agent->signal(SIGCONT);
}

void Stage::pod_resources_fail() {
  last_ = "PodResources fails";
  fakes::KubeletFaults faults;
  constexpr std::array kFaults = {fakes::PodResourcesFault::error, fakes::PodResourcesFault::hangs,
                                  fakes::PodResourcesFault::garbage, fakes::PodResourcesFault::oversized};
  faults.pod_resources = kFaults[static_cast<std::size_t>(random(static_cast<int>(kFaults.size())))];
  static_cast<void>(node_.kubelet->set_faults(faults));
  pods_come_and_go();
  hold(milliseconds(random(3000)));
  pods_come_and_go();
  static_cast<void>(node_.kubelet->set_faults({}));
}

void Stage::attack() {
  last_.clear();
  pods_come_and_go();
  const int which = random(20);
  if (which < 9) {
    fault_in_a_file();
  } else if (which < 11) {
    several_faults_at_once();
  } else {
    constexpr std::array<void (Stage::*)(), 9> kOthers = {
        &Stage::change_in_mid_read, &Stage::device_leaves,    &Stage::driver_reloads,
        &Stage::interface_leaves,   &Stage::kubelet_restarts, &Stage::stream_is_cut,
        &Stage::agent_is_killed,    &Stage::agent_is_stopped, &Stage::pod_resources_fail};
    (this->*kOthers[static_cast<std::size_t>(which - 11)])();
  }
  must_be_whole(kBack);
  judge_.nothing_twice();
  judge_.alive_and_bounded();
}

}  // namespace neuron::attack
