#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/health/assess.h"
#include "agent/health/reasons.h"
#include "agent/preflight/preflight.h"

// The parts of preflight(), one per subject; inside preflight/ only. Each adds its findings to `report`. `scan` is
// assessed (health::Assessment::host). A new finding also needs a row in docs/checks.md and a case in
// test/unit/preflight/codes_test.cpp.
namespace neuron::preflight::rules {

// Collects findings. `not_checked`: the parts that could not be examined, and why.
struct Report {
  std::vector<Finding> findings;
  std::vector<Evidence> not_checked;

  void error(std::string_view code, std::string sentence, std::vector<Evidence> evidence, std::string fix,
             std::vector<std::string> subjects = {}) {
    add(Severity::error, code, std::move(sentence), std::move(evidence), std::move(fix), std::move(subjects));
  }
  void warning(std::string_view code, std::string sentence, std::vector<Evidence> evidence, std::string fix,
               std::vector<std::string> subjects = {}) {
    add(Severity::warning, code, std::move(sentence), std::move(evidence), std::move(fix), std::move(subjects));
  }
  void add(Severity severity, std::string_view code, std::string sentence, std::vector<Evidence> evidence,
           std::string fix, std::vector<std::string> subjects = {}) {
    findings.push_back(
        {std::string(code), severity, std::move(sentence), std::move(evidence), std::move(fix), std::move(subjects)});
  }
};

// Evidence, cut to a readable length.
class Shown {
 public:
  void add(Evidence evidence) {
    if (shown_.size() < kMost) {
      shown_.push_back(std::move(evidence));
    } else {
      ++left_;
    }
  }
  [[nodiscard]] std::vector<Evidence> take() {
    if (left_ > 0) shown_.push_back({"...", "and " + std::to_string(left_) + " more"});
    return std::move(shown_);
  }

 private:
  static constexpr std::size_t kMost = 8;
  std::vector<Evidence> shown_;
  std::size_t left_ = 0;
};

void check_driver(const model::HostScan& scan, const PreflightFacts& facts, Report& report);
void check_devices(const model::HostScan& scan, const PreflightFacts& facts, Report& report);
void check_fit(const model::HostScan& scan, const PreflightFacts& facts, Report& report);
void check_health(const health::Assessment& node, Report& report);
void check_efas(const model::HostScan& scan, const PreflightFacts& facts, Report& report);
void check_fabric(const model::HostScan& scan, const PreflightFacts& facts, Report& report);
void check_settings(const model::HostScan& scan, const PreflightFacts& facts, Report& report);
void check_kubelet(const model::HostScan& scan, const PreflightFacts& facts, Report& report);
void check_claims(const model::HostScan& scan, const PreflightFacts& facts, Report& report);

// The check is for claims, or the node has served some.
[[nodiscard]] inline bool has_claims(const PreflightFacts& facts) {
  return facts.claims.asked || facts.claims.found;
}

using health::joined;
[[nodiscard]] inline Evidence evidence_of(const model::ReadProblem& problem) {
  if (problem.path.empty()) return {describe_problem(problem), "not readable"};
  return {problem.path, describe_problem(problem)};
}
// A machine without Neuron and EFA.
[[nodiscard]] inline bool serves_nothing(const model::HostScan& scan) {
  return scan.neuron_pci_functions <= 0 && scan.devices.empty() && scan.efas.empty();
}
[[nodiscard]] inline std::string name_of(const model::NeuronDevice& device) {
  return "neuron" + std::to_string(device.index);
}
[[nodiscard]] inline std::string label_of(const model::EfaInterface& efa) {
  return efa.name.empty() ? model::to_string(efa.bdf) : efa.name;
}

}  // namespace neuron::preflight::rules
