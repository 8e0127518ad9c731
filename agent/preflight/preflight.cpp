#include "agent/preflight/preflight.h"

#include <algorithm>

#include "agent/health/missing.h"
#include "agent/health/policy.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight {
namespace {

constexpr std::size_t kMaxShownProblems = 8;

// Whether a finding rests on this line already.
bool is_told(const rules::Report& report, const std::string& line) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                       [&](const Evidence& seen) { return line == seen.path + ": " + seen.value; });
  });
}

// What made a device's health unknown, whether or not the finding shows every line of it.
std::vector<std::string> told_of_health(const model::HostScan& scan, const model::NeuronDevice& device,
                                        const rules::Report& report) {
  const std::string name = "neuron" + std::to_string(device.index);
  const bool told = std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    return (finding.code == health::kSignalUnreadable || finding.code == health::kNothingReadable) &&
           std::find(finding.subjects.begin(), finding.subjects.end(), name) != finding.subjects.end();
  });
  return told ? health::unread_signals(scan, device) : std::vector<std::string>{};
}

// The scan's own lines, less what has a finding of its own.
void check_problems(const model::HostScan& scan, rules::Report& report) {
  std::vector<Evidence> evidence;
  std::size_t count = 0;
  const auto add = [&](const std::string& line) {
    constexpr std::string_view kOwnFinding[] = {"opt/aws/neuron/logical_nc_config", "sys/class/neuron_device: driver ",
                                                "sys/class/neuron_device: the driver is loaded"};
    for (const std::string_view start : kOwnFinding) {
      if (line.starts_with(start)) return;
    }
    if (is_told(report, line)) return;
    if (++count > kMaxShownProblems) return;
    const auto colon = line.find(": ");
    evidence.push_back(colon == std::string::npos ? Evidence{line, "not readable"}
                                                  : Evidence{line.substr(0, colon), line.substr(colon + 2)});
  };
  for (const std::string& line : scan.problems) add(line);
  for (const model::NeuronDevice& device : scan.devices) {
    const auto told = told_of_health(scan, device, report);
    for (const std::string& line : device.problems) {
      if (std::find(told.begin(), told.end(), line) == told.end()) add(line);
    }
  }
  for (const model::EfaInterface& efa : scan.efas) {
    for (const std::string& line : efa.problems) add(line);
  }
  if (count == 0) return;
  report.warning("unreadable",
                 count == 1 ? "something could not be read, or made no sense"
                            : std::to_string(count) + " things could not be read, or made no sense",
                 std::move(evidence), "values behind them are unknown; look at the kernel log if they should be there");
}

void add_not_checked(rules::Report& report) {
  if (report.not_checked.empty()) return;
  report.add(Severity::info, "not_checked", "some things could not be looked at from here",
             std::move(report.not_checked), "");
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::info:
      return "info";
  }
  return "error";
}

std::vector<Finding> preflight(const model::HostScan& scan, const PreflightFacts& facts) {
  rules::Report report;
  rules::check_driver(scan, facts, report);
  rules::check_devices(scan, facts, report);
  rules::check_fit(scan, facts, report);
  rules::check_health(scan, report);
  rules::check_efas(scan, facts, report);
  rules::check_fabric(scan, facts, report);
  rules::check_settings(scan, facts, report);
  rules::check_kubelet(scan, facts, report);
  check_problems(scan, report);
  add_not_checked(report);
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return std::move(report.findings);
}

int count_severity(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(),
                                        [&](const Finding& finding) { return finding.severity == severity; }));
}

}  // namespace neuron::preflight
