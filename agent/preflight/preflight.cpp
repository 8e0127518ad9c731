#include "agent/preflight/preflight.h"

#include <algorithm>

#include "agent/model/reasons.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight {
namespace {

constexpr std::size_t kMaxShownProblems = 8;

// Whether a finding rests on it already.
bool is_told(const rules::Report& report, const model::ReadProblem& problem) {
  const Evidence sought = rules::evidence_of(problem);
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    return std::find(finding.evidence.begin(), finding.evidence.end(), sought) != finding.evidence.end();
  });
}

// Kinds that are findings by themselves.
bool has_own_finding(model::ProblemKind kind) {
  using Kind = model::ProblemKind;
  return kind == Kind::lnc_file || kind == Kind::unknown_layout || kind == Kind::no_device ||
         kind == Kind::missing_signals;
}

// What made a device's health unknown, whether or not the finding shows all of it.
bool is_told_of_health(const health::Assessment& node, std::size_t position, const rules::Report& report,
                       const model::ReadProblem& problem) {
  const std::vector<model::ReadProblem>& unread = node.bases[position].unread;
  if (std::find(unread.begin(), unread.end(), problem) == unread.end()) return false;
  const std::string name = "neuron" + std::to_string(node.host.devices[position].index);
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    return (finding.code == model::reason::kSignalUnreadable || finding.code == model::reason::kNothingReadable) &&
           std::find(finding.subjects.begin(), finding.subjects.end(), name) != finding.subjects.end();
  });
}

// What the scan itself complains of, less what has a finding of its own.
void check_problems(const health::Assessment& node, rules::Report& report) {
  const model::HostScan& scan = node.host;
  std::vector<Evidence> evidence;
  std::size_t count = 0;
  const auto add = [&](const model::ReadProblem& problem) {
    if (has_own_finding(problem.kind) || is_told(report, problem)) return;
    if (++count <= kMaxShownProblems) evidence.push_back(rules::evidence_of(problem));
  };
  for (const model::ReadProblem& problem : scan.problems) add(problem);
  for (std::size_t i = 0; i < scan.devices.size(); ++i) {
    for (const model::ReadProblem& problem : scan.devices[i].problems) {
      if (!is_told_of_health(node, i, report, problem)) add(problem);
    }
  }
  for (const model::EfaInterface& efa : scan.efas) {
    for (const model::ReadProblem& problem : efa.problems) add(problem);
  }
  if (count == 0) return;
  report.warning("unreadable",
                 count == 1 ? "one value could not be read or was malformed"
                            : std::to_string(count) + " values could not be read or were malformed",
                 std::move(evidence), "the values are unknown; inspect the kernel log if they should exist");
}

void add_not_checked(rules::Report& report) {
  if (report.not_checked.empty()) return;
  report.add(Severity::info, "not_checked", "some checks could not be made from here", std::move(report.not_checked),
             "");
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
  health::AssessMemory memory;
  memory.health.verbs_nodes_seen = !facts.own_dev;
  const health::Assessment node = health::assess(scan, memory, {});
  rules::Report report;
  rules::check_driver(node.host, facts, report);
  rules::check_devices(node.host, facts, report);
  rules::check_fit(node.host, facts, report);
  rules::check_health(node, report);
  rules::check_efas(node.host, facts, report);
  rules::check_fabric(node.host, facts, report);
  rules::check_settings(node.host, facts, report);
  rules::check_kubelet(node.host, facts, report);
  rules::check_claims(node.host, facts, report);
  check_problems(node, report);
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
