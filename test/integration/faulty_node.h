#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "test/fakes/paths.h"
#include "test/fakes/sanitized.h"
#include "test/integration/node.h"

namespace neuron::fakes {

inline constexpr std::chrono::seconds kBudget{2};  // monitor::Monitor::Timing
// What a loaded machine adds to the budget, with the scans before and after.
inline constexpr std::chrono::seconds kSlack{6};

// A node whose agent sees faults as `rules` says.
struct FaultyNode : Node {
  explicit FaultyNode(const std::string& instance_type) : Node(instance_type) {
    extra_environment = {"LD_PRELOAD=" + faulty_io(), "FAULTY_IO=" + control(), sanitizer_allows_preload()};
  }
  [[nodiscard]] std::string control() const { return kubelet_dir + "/faulty-io"; }
  void rules(const std::string& text) {
    std::ofstream(control() + ".new") << text;
    std::filesystem::rename(control() + ".new", control());
  }
  [[nodiscard]] bool sees(const std::string& resource, int count, std::chrono::seconds within = kBudget + kSlack) {
    return kubelet->wait_for([&] { return kubelet->allocatable(resource) == count; }, within);
  }
};

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace neuron::fakes
