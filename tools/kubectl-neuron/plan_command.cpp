#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "agent/base/child_process.h"
#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/kubectl.h"
#include "tools/kubectl-neuron/plan.h"

namespace neuron::fleet {
namespace {

constexpr std::size_t kMostBytes = std::size_t{8} << 20U;
constexpr std::chrono::seconds kConversion{60};

Result<std::string> text_of(const std::string& file) {
  if (file == "-") return read_all(STDIN_FILENO, kMostBytes, "standard input");
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(file, failed);  // it may be a link
  return read_text_file(failed ? file : real.string(), kMostBytes);
}

bool is_json(std::string_view text) {
  return trim(text).starts_with("{");
}

// YAML as JSON: kubectl converts it, and creates nothing.
Result<std::string> converted(const Options& options, const std::string& file) {
  TRY_ASSIGN(const std::string kubectl, find_on_path("kubectl"));
  std::vector<std::string> words = {kubectl, "create", "--dry-run=client", "--validate=false", "-o", "json",
                                    "-f",    file};
  for (const std::string& word : options.cluster.words()) words.push_back(word);
  if (!options.cluster.kube_namespace.empty()) words.push_back("--namespace=" + options.cluster.kube_namespace);
  TRY_ASSIGN(const ChildOutcome outcome, run_program(words, kConversion, kMostBytes));
  if (outcome.end == ChildOutcome::End::exited && outcome.status == 0) return outcome.output;
  return fail(ErrorCode::invalid_argument,
              "kubectl cannot convert " + printable(file, 400) + ": " + printable(trim(outcome.errors), 400));
}

Result<std::string> manifest_text(const Options& options, const std::string& file) {
  const bool is_input = file == "-";
  TRY_ASSIGN(const std::string text, text_of(file));
  if (is_json(text)) return text;
  if (!options.from.empty() || is_input) {
    return fail(ErrorCode::invalid_argument, std::string(is_input ? "standard input" : "with --from the manifest") +
                                                 " has to be JSON: kubectl create --dry-run=client -o json -f FILE");
  }
  return converted(options, file);
}

}  // namespace

void add_plan(CLI::App& command, PlanOptions& own) {
  command.add_option("-f,--filename", own.file, "Manifest; -: standard input, JSON")->required()->type_name("FILE");
  command.add_option("--replicas", own.replicas, "Pods of its first template")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  command.add_option("-o,--output", own.output, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

int run_plan(const Options& options, const PlanOptions& own) {
  const auto text = manifest_text(options, own.file);
  if (!text) return fail_with(text.error());
  Wanted wanted;
  wanted.claim_templates = true;
  const auto fleet = read_fleet(options, wanted);
  if (!fleet) return fail_with(fleet.error());
  print_unknown(*fleet);
  const auto manifest = parse_manifest(*text, namespace_of(options, *fleet), fleet->classes);
  if (!manifest) return fail_with(manifest.error());
  const Plan answer = plan(*fleet, *manifest, own.replicas);
  return print(own.output == "json" ? plan_json(answer) : plan_text(answer), exit_status(answer));
}

}  // namespace neuron::fleet
