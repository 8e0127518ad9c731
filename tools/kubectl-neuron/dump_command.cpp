#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/dump.h"

namespace neuron::fleet {

void add_dump(CLI::App& command, DumpOptions& own) {
  command.add_option("FILE", own.file, "A new .tar.gz or directory; -: standard output")->type_name("")->required();
  command.add_flag("--anonymise", own.anonymise, "Replace names of nodes, pods and namespaces");
}

int run_dump(const Options& options, const DumpOptions& own) {
  auto documents = documents_of(options, {.agents = true, .claim_templates = true, .events = true});
  if (!documents) return fail_with(documents.error());
  if (own.anonymise) anonymise(*documents);
  const auto written = write_dump(*documents, own.file);
  return written ? kExitOk : fail_with(written.error());
}

}  // namespace neuron::fleet
