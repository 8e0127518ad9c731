#include <grpc/support/log.h>
#include <malloc.h>
#include <spdlog/async.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "agent/base/fd.h"
#include "agent/host/root_source.h"
#include "agent/host/scanner.h"
#include "agent/rpc/pod_resources.h"
#include "agent/status/node_object.h"
#include "neuron_version.h"
#include "plugin/kubelet/process.h"
#include "tools/neuron-agent/catalogue.h"
#include "tools/neuron-agent/daemon.h"
#include "tools/neuron-agent/options.h"
#include "tools/neuron-agent/reports.h"
#include "tools/pods/pods.h"

namespace neuron::agent {
namespace {

constexpr std::uint64_t kEnoughDescriptors = 1024;

// gRPC writes to stderr itself, from whatever thread, names a socket that has another name each time, and would wait
// for a reader. Its callers log the failures that matter.
void log_of_grpc(gpr_log_func_args* line) {
  spdlog::debug("grpc {}", line->message);
}

void ignore_log_of_grpc(gpr_log_func_args* /*line*/) {}

// Lines go to stderr from a thread of their own, the oldest dropped when they are not read: a stuck log pipe must hold
// up neither an answer to the kubelet nor the exit.
void set_up_logging(const std::string& level) {
  constexpr std::size_t kQueuedLines = 512;
  spdlog::init_thread_pool(kQueuedLines, 1);
  auto sink = std::make_shared<plugin::StderrSink>(STDERR_FILENO);
  auto logger = std::make_shared<spdlog::async_logger>("agent", std::move(sink), spdlog::thread_pool(),
                                                       spdlog::async_overflow_policy::overrun_oldest);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(log_of_grpc);
}

void end_logging() {
  gpr_set_log_function(ignore_log_of_grpc);
  spdlog::shutdown();
}

int fail_early(const Error& error) {
  std::fprintf(stderr, "neuron-agent: %s\n", error.message.c_str());
  return static_cast<int>(ExitCode::failed);
}

int misuse(const Error& error) {
  static_cast<void>(fail_early(error));
  return static_cast<int>(ExitCode::usage);
}

int serve(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the log that leaves ends nothing
  const auto signals = plugin::block_signals();
  if (!signals) return fail_early(signals.error());
  set_up_logging(options.log_level);
  const DescriptorLimit limit = raise_descriptor_limit();
  if (limit.now < kEnoughDescriptors) {
    spdlog::warn(
        "open file limit too low limit={} needed={}; raise the hard limit (ulimit -Hn, LimitNOFILE=), see "
        "docs/reliability.md#descriptors",
        limit.now, kEnoughDescriptors);
  }
  const bool claims = options.mode == Mode::dra;
  const auto code = claims ? run_dra_driver(options, *signals) : run_device_plugin(options, *signals);
  end_logging();
  return static_cast<int>(code);
}

// The offer may depend on the machine: its instance type is read first.
Result<void> settle_offer_on(Options& options, const std::string& directory) {
  TRY(check_metrics_options(options));
  if (options.mode == Mode::dra) return settle_dra(options);
  if (options.node_groups.empty()) return settle_offer(options, "");
  TRY_ASSIGN(const auto root, host::FsRoot::open(directory));
  TRY_ASSIGN(const std::string type, host::read_instance_type(root));
  return settle_offer(options, type);
}

int check_config(Options options) {
  std::optional<host::RootSource> source;
  if (!options.node_groups.empty()) {
    auto opened = host::RootSource::open(options.root);
    if (!opened) return fail_early(opened.error());
    source = *std::move(opened);
  }
  const std::string directory = source ? source->directory() : options.root;
  if (const auto settled = settle_offer_on(options, directory); !settled) return misuse(settled.error());
  for (const std::string& line : describe(options)) std::puts(line.c_str());
  for (const std::string& doubt : options.doubts) std::fprintf(stderr, "neuron-agent: %s\n", doubt.c_str());
  return 0;
}

int run(Options options) {
  if (options.check_config) return check_config(options);
  const auto source = host::RootSource::open(options.root);
  if (!source) return fail_early(source.error());
  options.root = source->directory();
  if (const auto settled = settle_offer_on(options, options.root); !settled) return misuse(settled.error());
  if (!options.once) return serve(options);
  // No signal is blocked: any of them ends the scan.
  set_up_logging(options.log_level);
  const bool claims = options.mode == Mode::dra;
  const auto code = claims ? print_slices_once(options) : print_resources_once(options);
  end_logging();
  return static_cast<int>(code);
}

// `neuron-agent pods SOCKET MILLISECONDS` (tools/pods/pods.h): asks the kubelet once and prints the answer.
int print_pods(const std::string& socket, std::chrono::milliseconds deadline) {
  auto listed = rpc::PodResourcesClient(socket).list(deadline);
  if (!listed) {
    std::fprintf(stderr, "%s: %s\n", socket.c_str(), listed.error().message.c_str());
    return EXIT_FAILURE;
  }
  std::erase_if(*listed, [](const model::Allocation& one) { return one.ids.empty() || one.admin_access; });
  const std::string text = pods::format_pod_lines(*listed);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int print(Report report) {
  const std::string& text = report.output;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    report = cannot_tell("cannot write to standard output");
  }
  if (!report.error.empty()) std::fprintf(stderr, "neuron-agent: %s\n", report.error.c_str());
  return static_cast<int>(report.verdict);
}

int print_catalogue(Options options) {
  if (const auto settled = settle_catalogue(options); !settled) return misuse(settled.error());
  const Catalogue result = catalogue(options);
  for (const std::string& note : options.doubts) std::fprintf(stderr, "neuron-agent: %s\n", note.c_str());
  for (const std::string& note : result.notes) std::fprintf(stderr, "neuron-agent: %s\n", note.c_str());
  return print(result.report);
}

int withdraw(const Options& options) {
  const auto withdrawn = status::withdraw(options.api, options.node_name);
  if (withdrawn) return 0;
  const bool is_misuse = withdrawn.error().code == ErrorCode::invalid_argument;
  return is_misuse ? misuse(withdrawn.error()) : fail_early(withdrawn.error());
}

int program(int argc, char** argv) {
  CLI::App app{"Neuron and EFA node agent: offers this node's devices to the kubelet."};
  app.name("neuron-agent");
  app.set_version_flag("--version", std::string("neuron-agent ") + kVersion);
  app.require_subcommand(1);
  // Apart, since CLI11 reads the environment for all commands.
  Options run_options, check_options, withdraw_options, explain_options, catalogue_options;
  CLI::App* run_command = app.add_subcommand("run", "Serve this node's kubelet until SIGTERM");
  add_options(*run_command, Command::run, run_options);
  CLI::App* check_command = app.add_subcommand("check", "Check this node and report problems");
  check_command->footer("Exit status: 0 no problem, 1 errors or warnings, 2 undetermined.");
  add_options(*check_command, Command::check, check_options);
  CLI::App* withdraw_command = app.add_subcommand("withdraw", "Remove the agent's labels and conditions of a node");
  add_options(*withdraw_command, Command::withdraw, withdraw_options);
  CLI::App* explain_command = app.add_subcommand("explain", "Explain what a pod holds on this node");
  explain_command->require_subcommand(1);
  CLI::App* explain_pod = explain_command->add_subcommand("pod", "Explain what a pod holds on this node");
  explain_pod->footer("Exit status: 0 all healthy, 1 a problem, 2 undetermined or no such pod.");
  add_options(*explain_pod, Command::explain, explain_options);
  CLI::App* catalogue_command = app.add_subcommand("catalogue", "Print what the agent shows on each instance type");
  add_options(*catalogue_command, Command::catalogue, catalogue_options);
  // Not for users: neuron-ls and neuron-top run it.
  CLI::App* pods_command = app.add_subcommand("pods", "Print the kubelet's allocations")->group("");
  std::string kubelet_socket;
  int milliseconds = 0;
  pods_command->add_option("SOCKET", kubelet_socket)->required();
  pods_command->add_option("MILLISECONDS", milliseconds)->required()->check(CLI::Range(1, 60'000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  if (pods_command->parsed()) return print_pods(kubelet_socket, std::chrono::milliseconds(milliseconds));
  if (explain_command->parsed()) return print(explain(explain_options));
  if (catalogue_command->parsed()) return print_catalogue(catalogue_options);
  if (withdraw_command->parsed()) return withdraw(withdraw_options);
  if (check_command->parsed())
    return print(check_options.claim ? check_claim(check_options) : check_node(check_options));
  return run(run_options);
}

}  // namespace
}  // namespace neuron::agent

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  mallopt(M_ARENA_MAX, 2);               // a dozen mostly idle threads would otherwise keep an arena each
  mallopt(M_TRIM_THRESHOLD, 128 << 10);  // fixed: left to glibc it grows, and the second arena keeps what a burst took
  return neuron::agent::program(argc, argv);
}
