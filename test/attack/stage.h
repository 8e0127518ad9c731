#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/attack/judge.h"
#include "test/integration/node.h"

namespace neuron::attack {

// What a file belongs to: whoever may suffer when reading it goes wrong.
struct Victim {
  std::string path;  // glob on the resolved absolute path
  int device = -1;   // index, or
  std::string efa;   // RDMA name, or neither: the whole host
};

// One node under attack: a simulated host whose files can go wrong, the kubelet stand-in, the real agent, pods that
// come and go, and the judge. One thread.
class Stage {
 public:
  Stage(const std::string& instance_type, unsigned seed);

  // One random attack: begins, is watched, ends, and the node must become whole again.
  void attack();
  [[nodiscard]] std::vector<std::string> take_complaints() { return judge_.take_complaints(); }
  [[nodiscard]] const std::string& last() const { return last_; }  // what the newest attack was
  [[nodiscard]] std::string agent_log() const { return node_.agent->log(); }

 private:
  void find_victims();
  void fault_in_a_file();
  void several_faults_at_once();
  void change_in_mid_read();
  void device_leaves();
  void driver_reloads();
  void interface_leaves();
  void kubelet_restarts();
  void stream_is_cut();
  void agent_is_killed();
  void agent_is_stopped();
  void pod_resources_fail();
  void start_agent();

  void pods_come_and_go();
  void hold(std::chrono::milliseconds time);
  void must_be_whole(std::chrono::milliseconds within);
  void only_these_may_suffer(const std::set<int>& devices, const std::set<std::string>& efas);
  void must_suffer(const std::string& resource, const std::string& id, std::chrono::milliseconds within);
  [[nodiscard]] int random(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  void set_faults(const std::vector<std::string>& lines);
  [[nodiscard]] int sound_device(int except);

  std::mt19937 random_;
  fakes::Node node_;
  std::string control_;
  Judge judge_;
  std::vector<Victim> victims_;
  std::vector<std::string> efas_;
  std::vector<std::string> pods_;
  int devices_ = 0;
  int pods_made_ = 0;
  std::string last_;
};

}  // namespace neuron::attack
