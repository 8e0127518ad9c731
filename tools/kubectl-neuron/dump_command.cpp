#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/listings.h"

namespace neuron::fleet {

void add_output(CLI::App& command, std::string& output) {
  command.add_option("-o,--output", output, "table, wide, json or csv")
      ->check(CLI::IsMember({"table", "wide", "json", "csv"}))
      ->type_name("FORMAT")
      ->take_last();
}

Output output_of(const std::string& text) {
  if (text == "wide") return Output::wide;
  if (text == "json") return Output::json;
  return text == "csv" ? Output::csv : Output::table;
}

void add_dump(CLI::App& command, DumpOptions& own) {
  command.add_option("FILE", own.file, "A new NAME.tar.gz or directory, or - for standard output")->required();
  command.add_flag("--anonymise", own.anonymise, "Replace names of nodes, pods and namespaces");
}

int run_dump(const Options& options, const DumpOptions& own) {
  auto documents = documents_of(options, {.agents = true, .metrics = true, .claim_templates = true, .events = true});
  if (!documents) return fail_with(documents.error());
  const auto written = write_dump(*documents, own.file);
  return written ? kExitOk : fail_with(written.error());
}

}  // namespace neuron::fleet
