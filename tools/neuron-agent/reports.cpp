#include "tools/neuron-agent/reports.h"

#include <nlohmann/json.hpp>

#include "agent/base/child_process.h"
#include "agent/base/fd.h"
#include "agent/host/root_source.h"

namespace neuron::agent {
namespace {

// The report of a child: its status is the verdict, and its text the output or the reason.
Report report_of(const ChildOutcome& child, const Options& options, const ReportWords& words) {
  using End = ChildOutcome::End;
  if (child.end == End::out_of_time) {
    return cannot_tell(words.work + " took longer than " + std::to_string(options.timeout.count()) +
                       " ms: " + words.may_hang + ", or raise --timeout");
  }
  if (child.end == End::killed) {
    return cannot_tell(words.killed + " died of signal " + std::to_string(child.status) + "; please report it");
  }
  if (child.end == End::cut) return cannot_tell(words.output + " is too long; please report it");
  if (child.status != 0 && child.status != 1) return cannot_tell(child.output);
  return {static_cast<Verdict>(child.status), child.output, ""};
}

Report run(const Options& options, const ReportWords& words, const std::function<Report()>& make) {
  const auto in_child = [&](int output) {
    const Report report = make();
    const std::string& text = report.verdict == Verdict::cannot_tell ? report.error : report.output;
    return static_cast<int>(write_all(output, text, words.output) ? report.verdict : Verdict::cannot_tell);
  };
  const auto child = run_in_child(in_child, options.timeout, words.most_output);
  return child ? report_of(*child, options, words) : cannot_tell(child.error().message);
}

Report run_on_root(const Options& options, const ReportWords& words,
                   const std::function<Report(const std::string& directory)>& make) {
  const auto source = host::RootSource::open(options.root);
  if (!source) {
    const bool absent = source.error().code == ErrorCode::not_found;
    return cannot_tell(source.error().message + (absent ? words.no_root : ""));
  }
  return run(options, words, [&] { return make(source->directory()); });
}

}  // namespace

Report report_in_child(const Options& options, const ReportWords& words,
                       const std::function<Report(const std::string& directory)>& make) {
  return with_document(run_on_root(options, words, make), words.schema, options.output);
}

Report report_in_child(const Options& options, const ReportWords& words, const std::function<Report()>& make) {
  return with_document(run(options, words, make), words.schema, options.output);
}

Report with_document(Report report, const std::string& schema, ReportForm form) {
  if (report.verdict == Verdict::cannot_tell && form == ReportForm::json) {
    report.output = dump({{"schema", schema}, {"verdict", "cannot_tell"}, {"reason", report.error}});
  }
  return report;
}

Report cannot_tell(const std::string& reason) {
  return {Verdict::cannot_tell, "", reason};
}

std::string dump(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace neuron::agent
