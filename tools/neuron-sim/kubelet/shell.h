#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "agent/model/host_scan.h"
#include "tools/neuron-sim/kubelet/fake_kubelet.h"
#include "tools/neuron-sim/kubelet/script.h"

namespace neuron::sim {

// Carries out the commands of a script on a kubelet. One thread at a time.
class Shell {
 public:
  // The node as it is now, completed; called for every pod. May be empty: then answers come without reasons.
  using HostReader = std::function<model::HostScan()>;

  // `wait_timeout` is the longest a wait command waits. The references outlive this.
  Shell(FakeKubelet& kubelet, std::ostream& out, std::ostream& errors, std::chrono::milliseconds wait_timeout,
        HostReader read_host = {});

  // Until the input ends or says quit; `prompt` is printed before each line. A wrong line is reported on `errors` with
  // its number and does not stop the rest. A pod that is refused is an answer, not an error.
  // Returns 0, or 1 if any line was wrong or failed.
  [[nodiscard]] int run(std::istream& input, std::string_view prompt);

  // Waits until exactly so many units are allocatable and says how it went.
  // Errors: deadline_exceeded, naming what is there instead.
  [[nodiscard]] Result<void> wait(const std::map<std::string, int>& counts);

 private:
  [[nodiscard]] Result<void> execute(const Command& command);
  void admit(const PodSpec& pod);
  [[nodiscard]] Result<void> start(const PodSpec& pod);

  FakeKubelet& kubelet_;
  std::ostream& out_;
  std::ostream& errors_;
  const std::chrono::milliseconds wait_timeout_;
  const HostReader read_host_;
};

}  // namespace neuron::sim
