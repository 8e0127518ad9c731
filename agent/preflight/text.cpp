#include <algorithm>

#include "agent/preflight/preflight.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight {
namespace {

using rules::counted;

constexpr std::size_t kColumns = 80;
constexpr std::size_t kIndent = 8;

// `text` broken between words; the first line follows `lead`, the others are indented. A longer word stays whole.
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

std::string preflight_text(const std::vector<Finding>& findings, const model::HostScan& scan) {
  std::string text;
  for (const Finding& finding : findings) text += block(finding) + '\n';
  const int errors = count_severity(findings, Severity::error);
  const int warnings = count_severity(findings, Severity::warning);
  if (errors == 0 && warnings == 0) return text + "nothing wrong: " + describe_node(scan) + '\n';
  return text + counted(static_cast<std::size_t>(errors), "error") + ", " +
         counted(static_cast<std::size_t>(warnings), "warning") + '\n';
}

}  // namespace neuron::preflight
