#pragma once

#include <string>

#include "tools/neuron-agent/explain_options.h"

namespace neuron::agent {

// Exit codes of `neuron-agent explain pod`, as its man page lists them.
enum class ExplainVerdict { healthy = 0, findings = 1, cannot_tell = 2 };

// The output and the exit status.
struct ExplainReport {
  ExplainVerdict verdict = ExplainVerdict::cannot_tell;
  std::string output;  // for standard output: text, or one JSON document with a line end
  std::string error;   // for standard error of an undetermined report: lines without the last line end; else ""
};

// Reads the machine once, asks the kubelet for holdings and health, and reports the pod's hardware (explain_pod.h). All
// of it happens in a child process, so that a driver or a kubelet that hangs costs `options.timeout` and no more. Call
// it only while this process has one thread. Asking for holdings makes the kubelet release the devices of ended pods
// (docs/reference/kubelet.md#double-allocation): not for use in loops. With JSON, `cannot_tell` has a document too.
[[nodiscard]] ExplainReport explain(const ExplainOptions& options);

}  // namespace neuron::agent
