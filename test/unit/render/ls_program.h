#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "test/fakes/paths.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::test {

struct Outcome {
  int exit_code = -1;  // -1: did not end by itself
  std::string out;
  std::string err;
};

[[nodiscard]] std::string text_of(const std::filesystem::path& path);

// The real neuron-ls on a simulated machine of its own, in a temporary directory that goes with the test.
class LsProgram : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] std::filesystem::path host() const { return directory_ / "host"; }
  static std::string program() { return fakes::bin_dir() + "/neuron-ls"; }

  void simulate(const sim::HostPlan& plan) const;
  void simulate(const std::string& type, const std::string& driver = "") const;
  // One action of `neuron-sim set`.
  void set(const std::string& target, const std::string& action, const std::string& key = "") const;
  // The same two processes, one of them a monitor, on each device of the list.
  void occupy(const std::vector<int>& devices) const;
  void write(const std::string& path, const std::string& text) const;  // below the host

  // neuron-ls with `arguments` (shell text) in the root written by simulate().
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return run_raw(arguments + " --root " + host().string());
  }
  [[nodiscard]] Outcome run_raw(const std::string& arguments, const std::string& environment = "") const;

  // One recorded answer of the driver in place of the simulator's.
  void record(int device, const nlohmann::json& answer) const;

  std::filesystem::path directory_;
};

}  // namespace neuron::test
