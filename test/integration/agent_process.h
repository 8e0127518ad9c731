#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "test/integration/program.h"

namespace neuron::fakes {

// The real neuron-agent as a child process, its log in a file. What cannot be done ends the test program. The
// destructor kills what still runs. One thread.
class AgentProcess {
 public:
  // `arguments` follow "neuron-agent run"; `log_path` is appended to. `wrapper`: a command that is given the agent's
  // command line as its last arguments and becomes the agent in the end ("env LD_PRELOAD=…", "unshare -m", …).
  AgentProcess(const std::vector<std::string>& arguments, std::string log_path, std::vector<std::string> wrapper = {});

  void signal(int number) const { program_.signal(number); }
  // The exit code, or -signal when it was killed; nullopt when it still runs after `timeout`.
  [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds timeout) { return program_.wait(timeout); }
  [[nodiscard]] bool running() { return !wait(std::chrono::milliseconds(0)).has_value(); }
  [[nodiscard]] std::string log() const;  // everything it wrote so far
  [[nodiscard]] pid_t pid() const { return program_.pid(); }

 private:
  std::string log_path_;
  Program program_;
};

}  // namespace neuron::fakes
