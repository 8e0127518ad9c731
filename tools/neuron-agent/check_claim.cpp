#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "plugin/dra/claim/claim_check.h"
#include "tools/neuron-agent/reports.h"

namespace neuron::agent {
namespace {

using plugin::dra::ConfigFault;
using preflight::Finding;
using preflight::Severity;

constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;  // all claims of a large cluster

// Links and pipes too, such as those of a shell's <(...).
Result<std::string> read_text(const std::string& path) {
  if (path == "-") return read_all(STDIN_FILENO, kMaxBytes, "standard input");
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return fail(error_from_errno(errno, path));
  return read_all(file.get(), kMaxBytes, path);
}

Finding finding_of(const ConfigFault& fault) {
  const bool is_refused = fault.kind == ConfigFault::Kind::refused;
  return {is_refused ? "config_refused" : "config_of_other_driver",
          is_refused ? Severity::error : Severity::warning,
          fault.object + ": " + fault.problem,
          {{fault.path, fault.value}},
          fault.fix,
          {fault.object}};
}

Report make_report(const std::string& path, const Options& options) {
  const std::string& driver = options.dra.pool.driver;
  const auto text = read_text(path);
  if (!text) return cannot_tell(text.error().message);
  const auto checked = plugin::dra::check_claims(*text, driver);
  const std::string name = path == "-" ? "standard input" : path;
  if (!checked) return cannot_tell(name + ": " + checked.error().message);
  if (checked->objects == 0) return cannot_tell(name + ": no ResourceClaim, ResourceClaimTemplate or DeviceClass");
  std::vector<Finding> findings;
  for (const ConfigFault& fault : checked->faults) findings.push_back(finding_of(fault));
  std::ranges::stable_sort(findings, {}, &Finding::severity);
  const std::string examined =
      counted(checked->objects, "object") + ", " + counted(checked->configs, "configuration") + " for " + driver;
  return report_findings(findings, examined, nullptr, options.output);
}

}  // namespace

Report check_claim(const Options& options) {
  return with_document(make_report(options.claim.value_or(""), options), kCheckSchema, options.output);
}

}  // namespace neuron::agent
