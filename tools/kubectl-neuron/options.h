#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/kubectl-neuron/documents.h"

namespace neuron::fleet {

// Exit statuses of every command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFindings = 1;  // `why`: the pod cannot run now; `plan`: it does not fit
inline constexpr int kExitUnknown = 2;   // no answer, or wrong usage

enum class Output { table, wide, json, csv };

// A check of options and arguments that name a file: what is wrong with the name; "": nothing.
[[nodiscard]] std::string needs_name(const std::string& file);

// Options of every command; each adds its own (commands.h). Passive data.
struct Options {
  ClusterFlags cluster;   // --kubeconfig, --context, --cluster, --user, --as, --as-group, -n
  std::string from;       // --from: a dump instead of a cluster; "": the cluster
  bool no_color = false;  // --no-color
};

// Says on standard error for which kubectl a command waits.
[[nodiscard]] std::shared_ptr<Waits> said_waits();

// The documents, from the cluster or the dump; of a cluster without those kinds that `wanted` leaves out. Shows a
// progress line on a terminal. Errors: as open_kubectl, read_documents and read_dump. Before any other thread; blocks.
[[nodiscard]] Result<Documents> documents_of(const Options& options, const Wanted& wanted);

// The fleet of documents_of(), with reports. Errors and blocking as there.
[[nodiscard]] Result<Fleet> read_fleet(const Options& options, Wanted wanted);

// Leaves these nodes alone, as "NAME" or "node/NAME"; all, where none is named. Errors: not_found, with similar names;
// failed_precondition: it has no hardware.
[[nodiscard]] Result<void> keep_nodes(Fleet& fleet, const std::vector<std::string>& names);

// The namespace that a pod's name is looked for in: -n, else that of the context, else "default".
[[nodiscard]] std::string namespace_of(const Options& options, const Fleet& fleet);

// For the end of a command: prints "kubectl-neuron: <message>" on standard error and returns kExitUnknown.
int fail_with(const Error& error);

// Prints what could not be read (Fleet::unknown) on standard error, a line each.
void print_unknown(const Fleet& fleet);

// Writes `text` to standard output and returns `code`, or kExitUnknown where that fails.
int print(const std::string& text, int code = kExitOk);

// Whether standard output may have colour: a terminal, without NO_COLOR and --no-color.
[[nodiscard]] bool has_colour(const Options& options);

}  // namespace neuron::fleet
