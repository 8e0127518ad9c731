#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/preflight/preflight.h"
#include "tools/neuron-agent/options.h"

// `check` and `explain pod`: one scan of the machine, and a report on it as text or JSON.
namespace neuron::agent {

// Exit codes of both, as the man page lists them.
enum class Verdict { good = 0, findings = 1, cannot_tell = 2 };

// Text to print, and the exit code.
struct Report {
  Verdict verdict = Verdict::cannot_tell;
  std::string output;  // for standard output: text, or one JSON document with a line end
  std::string error;   // cannot_tell: the reason, for standard error, without the last line end; else ""
};

// Scans the machine and assesses it (preflight::preflight). The scan and the query to libfabric run in child processes,
// so that a hanging driver takes no longer than `options.timeout`; libfabric gets half of it. Call it only while this
// process has one thread. With JSON, `cannot_tell` has a document too.
[[nodiscard]] Report check_node(const Options& options);

// Reports on the claims in the file of `--claim`: what Prepare would refuse, and what is malformed or never scheduled.
// Reads nothing else, in a child process, as check_node(): a pipe that does not end takes no longer than
// `options.timeout`. With JSON, `cannot_tell` has a document too.
[[nodiscard]] Report check_claim(const Options& options);

// Findings of check_claim() in a file. Not known here: the node, the other requests of a container, the allocation.
struct CheckedClaims {
  std::size_t objects = 0;  // ResourceClaims, ResourceClaimTemplates and DeviceClasses
  std::size_t configs = 0;  // entries of config[] for the driver
  // Codes in docs/checks.md. The sentence begins with the object, "ResourceClaimTemplate default/neurons", which is the
  // subject; the evidence is one path in it, "spec.spec.devices.config[1].opaque.parameters", and its JSON, printable.
  std::vector<preflight::Finding> findings;
};

// `text`: as kube::read_documents takes it; lists of objects too. Objects of other kinds are skipped. Errors:
// read_documents. Pure.
[[nodiscard]] Result<CheckedClaims> check_claims(std::string_view text, const std::string& driver);

// Scans the machine once, asks the kubelet for holdings and health, and reports on the pod (explain_pod.h). All of it
// runs in a child process, so that a hanging driver or kubelet takes no longer than `options.timeout`. Call it only
// while this process has one thread. The query of holdings makes the kubelet forget the devices of ended pods
// (docs/reference/kubelet.md#double-allocation): for people, not for loops. With JSON, `cannot_tell` has a document
// too.
[[nodiscard]] Report explain(const Options& options);

// For both commands:

// Words of one command for failures.
struct ReportWords {
  std::string schema;     // of its JSON
  std::string work;       // "reading the machine"
  std::string may_hang;   // at the end of the timeout: "a driver may hang; inspect the kernel log"
  std::string killed;     // "the check"
  std::string output;     // "the report"
  std::string no_root{};  // advice for a root that does not exist
  std::size_t most_output = std::size_t{4} << 20U;  // bytes
};

// Runs `make` in a child process. Its argument is the directory of --root, or of the unpacked archive.
[[nodiscard]] Report report_in_child(const Options& options, const ReportWords& words,
                                     const std::function<Report(const std::string& directory)>& make);

// As above, without a root.
[[nodiscard]] Report report_in_child(const Options& options, const ReportWords& words,
                                     const std::function<Report()>& make);

[[nodiscard]] Report cannot_tell(const std::string& reason);

// `report`, with the document of `cannot_tell` where it has none and JSON is wanted.
[[nodiscard]] Report with_document(Report report, const std::string& schema, ReportForm form);

inline constexpr const char* kCheckSchema = "neuron-check/1";  // docs/checks.md

// The report of a check. `examined` is for text without errors and warnings, `node` for JSON; null = none.
[[nodiscard]] Report report_findings(const std::vector<preflight::Finding>& findings, const std::string& examined,
                                     const nlohmann::ordered_json& node, ReportForm form);

// Writes the document with indentation and a line end; foreign bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string dump(const nlohmann::ordered_json& document);

}  // namespace neuron::agent
