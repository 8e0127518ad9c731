#pragma once

#include <chrono>
#include <string>

#include "agent/core/pool_names.h"

namespace CLI {
class App;
}

// Options that `check` and `explain pod` both have: both look once and print an answer, as text or JSON.
namespace neuron::agent {

enum class ReportForm { text, json };

struct ReportOptions {
  std::string root = "/";                                 // --root, NEURON_AGENT_ROOT; a directory or an archive
  std::string kubelet_dir = "/var/lib/kubelet";           // --kubelet-dir
  bool kubelet_dir_set = false;                           // named by flag or variable
  std::string dra_driver_name{core::kDefaultDriverName};  // --dra-driver-name
  ReportForm output = ReportForm::text;                   // --output text|json
  std::chrono::milliseconds timeout{10000};               // --timeout: for everything
};

// --root and --kubelet-dir. `options` must outlive the parse, here and below.
void add_report_paths(CLI::App& command, ReportOptions& options, const std::string& kubelet_dir_help);

// --output and --timeout.
void add_report_form(CLI::App& command, ReportOptions& options, const std::string& output_help,
                     const std::string& timeout_help);

}  // namespace neuron::agent
