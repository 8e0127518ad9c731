#pragma once

#include <string>

#include "agent/base/result.h"
#include "tools/kubectl-neuron/documents.h"

// Documents in one file: a tar.gz of their JSON, or a directory of the same files.
//   dump.json        format, read_at, namespace, unknown; for each agent its pod and file, or why it has none
//   nodes/0.json …   pages of lists, by kind
//   agents/0.json …  answers to GET /node
namespace neuron::fleet {

inline constexpr const char* kDumpFormat = "kubectl-neuron-dump/1";

// Reads a dump, with agents' answers and slices parsed, or as texts. Errors: those of host::RootSource::open;
// data_corrupt (no dump, one of another format, a damaged archive, or contents larger than any cluster has), with the
// path. A list that is missing without a reason is in Documents::unknown and partial.
[[nodiscard]] Result<Documents> read_dump(const std::string& path, bool reports = true);

// Replaces names of nodes, namespaces, pods, containers, claims and owners, uids, serial numbers, instance ids, and
// labels other than those of Kubernetes, AWS and this project; command lines are dropped. Equal names become equal
// ones, also in sentences, of which else only words that are known stay. So do names of the project's resources and
// classes, and instance types. Of other drivers' devices nothing is left. A document that cannot be parsed is emptied.
// Pure.
void anonymise(Documents& documents);

// Errors: as gather::write_output: the file exists, or cannot be written.
[[nodiscard]] Result<void> write_dump(const Documents& documents, const std::string& path);

}  // namespace neuron::fleet
