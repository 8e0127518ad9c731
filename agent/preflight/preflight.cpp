#include "agent/preflight/preflight.h"

#include <algorithm>

#include "agent/model/health.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight {
namespace {

constexpr std::size_t kMaxShownProblems = 8;

// Whether a finding already has it as evidence.
bool is_reported(const rules::Report& report, const model::ReadProblem& problem) {
  const Evidence sought = rules::evidence_of(problem);
  return std::ranges::any_of(report.findings, [&](const Finding& finding) {
    return std::ranges::find(finding.evidence, sought) != finding.evidence.end();
  });
}

// Kinds that are findings by themselves.
bool has_own_finding(model::ProblemKind kind) {
  using Kind = model::ProblemKind;
  return kind == Kind::lnc_file || kind == Kind::unknown_layout || kind == Kind::no_device ||
         kind == Kind::missing_signals;
}

// Whether the problem made a device's health unknown, also when the finding does not show it.
bool is_reported_by_health(const health::Assessment& node, std::size_t position, const rules::Report& report,
                           const model::ReadProblem& problem) {
  const std::vector<model::ReadProblem>& unread = node.bases[position].unread;
  if (std::ranges::find(unread, problem) == unread.end()) return false;
  const std::string name = rules::name_of(node.host.devices[position]);
  return std::ranges::any_of(report.findings, [&](const Finding& finding) {
    return (finding.code == model::reason::kSignalUnreadable || finding.code == model::reason::kNothingReadable) &&
           std::ranges::find(finding.subjects, name) != finding.subjects.end();
  });
}

// Problems of the scan without their own finding.
void check_problems(const health::Assessment& node, rules::Report& report) {
  const model::HostScan& scan = node.host;
  std::vector<Evidence> evidence;
  std::size_t count = 0;
  const auto add = [&](const model::ReadProblem& problem) {
    if (has_own_finding(problem.kind) || is_reported(report, problem)) return;
    if (++count <= kMaxShownProblems) evidence.push_back(rules::evidence_of(problem));
  };
  for (const model::ReadProblem& problem : scan.problems) add(problem);
  for (std::size_t i = 0; i < scan.devices.size(); ++i) {
    for (const model::ReadProblem& problem : scan.devices[i].problems) {
      if (!is_reported_by_health(node, i, report, problem)) add(problem);
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

constexpr std::size_t kColumns = 80;
constexpr std::size_t kIndent = 8;

// `text` wrapped between words; the first line follows `lead`, the others are indented. A longer word stays whole.
std::string wrap(const std::string& lead, const std::string& text, std::size_t indent = kIndent) {
  std::string out = lead;
  std::size_t column = lead.size();
  std::size_t at = 0;
  bool first = true;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!first && column + 1 + word.size() > kColumns) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  return out + '\n';
}

std::string block(const Finding& finding) {
  std::string text =
      wrap(std::string(to_string(finding.severity)) + ": ", finding.sentence + " [" + finding.code + "]");
  std::string lead = "  seen  ";
  for (const Evidence& evidence : finding.evidence) {
    text += wrap(lead, evidence.path + ": " + evidence.value, kIndent + 2);
    lead = std::string(kIndent, ' ');
  }
  if (!finding.fix.empty()) text += wrap("  fix   ", finding.fix);
  return text;
}

}  // namespace

std::string_view to_string(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "info";
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
  std::ranges::stable_sort(report.findings, {}, &Finding::severity);
  return std::move(report.findings);
}

int count_severity(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<int>(std::ranges::count(findings, severity, &Finding::severity));
}

std::string describe_node(const model::HostScan& scan) {
  std::string text = scan.instance_type.empty() ? "unknown instance type" : scan.instance_type;
  text += ", " + (scan.devices.empty() ? std::string("no Neuron device") : counted(scan.devices.size(), "device"));
  text += ", " + (scan.efas.empty() ? std::string("no EFA interface") : counted(scan.efas.size(), "EFA interface"));
  if (!scan.driver_version.empty()) {
    text += ", driver " + scan.driver_version;
  } else if (!scan.efa_driver_version.empty()) {
    text += ", EFA driver " + scan.efa_driver_version;
  }
  return text;
}

std::string preflight_text(const std::vector<Finding>& findings, const std::string& examined) {
  std::string text;
  for (const Finding& finding : findings) text += block(finding) + '\n';
  const int errors = count_severity(findings, Severity::error);
  const int warnings = count_severity(findings, Severity::warning);
  if (errors == 0 && warnings == 0) return text + "nothing wrong: " + examined + '\n';
  return text + counted(static_cast<std::size_t>(errors), "error") + ", " +
         counted(static_cast<std::size_t>(warnings), "warning") + '\n';
}

}  // namespace neuron::preflight
