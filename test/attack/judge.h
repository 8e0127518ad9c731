#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/integration/node.h"

// What must hold whatever is done to the node.
namespace neuron::attack {

// Physical hardware and interfaces, so that two names for the same are one.
struct Holding {
  std::set<int> cores;  // logical, global
  std::set<std::string> efas;
};

// Looks at one node. Every complaint is one line; the caller prints them and goes on.
class Judge {
 public:
  // `cores_per_device`: logical ones, as the agent numbers them.
  Judge(fakes::Node& node, int cores_per_device) : node_(node), cores_per_device_(cores_per_device) {}

  [[nodiscard]] Holding holding_of(const sim::PodView& pod) const;

  // No core and no interface in two pods.
  void nothing_twice();
  // The agent runs, and is bounded: resident memory, threads, descriptors, lines of log since the last look.
  void alive_and_bounded();
  // Units outside of the broken devices and interfaces that are not offered although nobody holds them.
  [[nodiscard]] std::vector<std::string> complaints_of(const std::set<int>& broken_devices,
                                                       const std::set<std::string>& broken_efas) const;
  void expect(std::set<std::string> resources) { resources_ = std::move(resources); }  // that the node has
  // As the kubelet sees it now: every resource is there, and every unit offered that nobody holds through another name.
  [[nodiscard]] bool whole() const;
  [[nodiscard]] std::string state();

  void complain(const std::string& what) { complaints_.push_back(what); }
  [[nodiscard]] std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }

 private:
  [[nodiscard]] std::set<int> held_cores(const char* except_resource) const;

  fakes::Node& node_;
  int cores_per_device_;
  std::set<std::string> resources_;
  std::size_t log_seen_ = 0;
  std::vector<std::string> complaints_;
};

}  // namespace neuron::attack
