#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/host_scan.h"
#include "tools/neuron-sim/kubelet/kubelet.h"

// `neuron-sim kubelet`: its commands, its output, and the loop between them.
namespace neuron::sim {

// The commands: one per line, "#" begins a comment line (script.cpp).
enum class Verb { pod, remove, start, list, show, wait, restart, down, up, advance, echo, help, quit };

// Passive data; which members count depends on the verb.
struct Command {
  Verb verb = Verb::help;
  PodSpec pod;                           // pod; remove: name and ns; start: name, ns and at most one container
  std::map<std::string, int> counts;     // wait: resource → allocatable
  std::chrono::milliseconds duration{};  // advance
  std::string text;                      // echo
};

// neuron, neuroncore, neurondevice and efa stand for the full resource names; other text is itself.
[[nodiscard]] std::string full_resource_name(std::string_view name);

// The other way round: "neuron" for aws.amazon.com/neuron; other text is itself.
[[nodiscard]] std::string short_resource_name(std::string_view name);

// "RESOURCE=N" with N from 0 to 100000. Errors: invalid_argument.
[[nodiscard]] Result<std::pair<std::string, int>> parse_count(std::string_view text);

// nullopt for an empty line or a comment. Errors: invalid_argument, in words that quote the wrong part.
[[nodiscard]] Result<std::optional<Command>> parse_command(std::string_view line);

[[nodiscard]] std::string_view script_help();  // at most 80 columns

// The output (report.cpp): text of at most 80 columns (a longer single word is not broken). Pure functions; each *_text
// ends with a newline, except ids_text.

// The node as the kubelet sees it at one moment.
struct NodeUse {
  std::vector<PodView> pods;
  std::map<std::string, ResourceView> resources;
};

struct ContainerNotes {
  std::string asked;                       // "neuron=4 efa=2"; "" for nothing and without a host
  std::map<std::string, std::string> why;  // by full resource name; only known reasons
};

// The reasons of the answer to a pod, and the free units after it. Empty texts where nothing is known.
struct PodNotes {
  std::vector<ContainerNotes> containers;  // as PodResult::containers; empty for a refused pod
  std::string left;                        // "neuron 12 of 16, efa 6 of 8": free now, of the capacity
};

// The stand-in does not see how the agent chose: reasons are derived from the free and the given units
// (allocator::explain_devices and the like). `host`: a completed scan of the node. Units that are unhealthy, or on
// hardware that is held through another resource, are not left. nullptr when the host is not known: then there are no
// reasons, and the units left are the kubelet's own count, which lags behind: units of the same hardware become
// unhealthy only with the agent's next list.
[[nodiscard]] PodNotes explain_pod(const PodSpec& pod, const Result<PodResult>& result, const NodeUse& before,
                                   const NodeUse& after, const model::HostScan* host);

// The kubelet's answer to a pod: per container its ids, environment and device nodes, or the refusal; with the notes.
[[nodiscard]] std::string pod_text(const PodSpec& pod, const Result<PodResult>& result, const PodNotes& notes = {});

// One container of the above.
[[nodiscard]] std::string container_text(const ContainerGrant& grant, const ContainerNotes& notes = {});

// A table, one line per resource; one sentence when there is none.
[[nodiscard]] std::string resources_text(const std::map<std::string, ResourceView>& resources);

// A table, one line per pod, container and resource; one sentence when there is none.
[[nodiscard]] std::string pods_text(const std::vector<PodView>& pods);

// Ids in short form: "0-3,8" when all are numbers, else the ids in reading order separated by spaces; "" for none.
[[nodiscard]] std::string ids_text(const IdSet& ids);

// Carries out the commands of a script on a kubelet. One thread at a time.
class Shell {
 public:
  // The node as it is now, completed; called for every pod. May be empty: then answers come without reasons.
  using HostReader = std::function<model::HostScan()>;

  // `wait_timeout` is the longest a wait command waits. The references outlive this.
  Shell(Kubelet& kubelet, std::ostream& out, std::ostream& errors, std::chrono::milliseconds wait_timeout,
        HostReader read_host = {});

  // Until the input ends or the command quit; `prompt` is printed before each line. A wrong line is reported on
  // `errors` with its number and does not stop the rest. A pod that is refused is an answer, not an error. Returns 0,
  // or 1 if any line was wrong or failed.
  [[nodiscard]] int run(std::istream& input, std::string_view prompt);

  // Waits until exactly so many units are allocatable and prints the result.
  // Errors: deadline_exceeded, with the allocatable units instead.
  [[nodiscard]] Result<void> wait(const std::map<std::string, int>& counts);

 private:
  [[nodiscard]] Result<void> execute(const Command& command);
  void admit(const PodSpec& pod);
  [[nodiscard]] Result<void> start(const PodSpec& pod);

  Kubelet& kubelet_;
  std::ostream& out_;
  std::ostream& errors_;
  const std::chrono::milliseconds wait_timeout_;
  const HostReader read_host_;
};

// The flags of `neuron-sim kubelet` as given. Passive data.
struct KubeletCommand {
  std::string kubelet_dir;
  std::string root;                   // the host directory that the agent reads; empty: unknown, no reasons
  std::vector<std::string> wait_for;  // RESOURCE=N each
  std::string timeout = "10s";        // of --wait-for and of each wait command
  std::string numa_policy = "none";
  unsigned seed = 1;
  bool verbose = false;  // events on stderr
  std::string script;    // empty or "-": standard input
};

// Adds the subcommand `kubelet` to `app`. When it is chosen, parsing runs it with the process's standard streams and
// leaves its exit code in `exit_code`, which must outlive `app`.
void add_kubelet_command(CLI::App& app, int& exit_code);

// Runs the kubelet until the script ends. Blocks. Returns the exit code: 0 done; 1 a line was wrong or failed, a wait
// ran out, or the kubelet could not start; 2 a flag's value is wrong.
[[nodiscard]] int run_kubelet_command(const KubeletCommand& command, std::istream& input, std::ostream& out,
                                      std::ostream& errors);

}  // namespace neuron::sim
