#include <grpc/support/log.h>
#include <malloc.h>
#include <spdlog/async.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include "agent/base/fd.h"
#include "agent/host/root_source.h"
#include "agent/host/scanner.h"
#include "neuron_version.h"
#include "plugin/daemon/stderr_sink.h"
#include "tools/neuron-agent/check_command.h"
#include "tools/neuron-agent/check_options.h"
#include "tools/neuron-agent/daemon.h"
#include "tools/neuron-agent/explain_command.h"
#include "tools/neuron-agent/explain_options.h"
#include "tools/neuron-agent/options.h"
#include "tools/neuron-agent/withdraw.h"

namespace {

constexpr std::uint64_t kEnoughDescriptors = 1024;

// gRPC writes to stderr itself, from whatever thread, names a socket that has another name each time, and would wait
// for a reader. Its callers log the failures that matter.
void log_words_of_grpc(gpr_log_func_args* said) {
  spdlog::debug("grpc {}", said->message);
}

void ignore_words_of_grpc(gpr_log_func_args* /*said*/) {}

// Lines go to stderr from a thread of their own, the oldest dropped when they are not read: a stuck log pipe must hold
// up neither an answer to the kubelet nor the exit.
void set_up_logging(const std::string& level) {
  constexpr std::size_t kQueuedLines = 512;
  spdlog::init_thread_pool(kQueuedLines, 1);
  auto sink = std::make_shared<neuron::plugin::StderrSink>(STDERR_FILENO);
  auto logger = std::make_shared<spdlog::async_logger>("agent", std::move(sink), spdlog::thread_pool(),
                                                       spdlog::async_overflow_policy::overrun_oldest);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(log_words_of_grpc);
}

void end_logging() {
  gpr_set_log_function(ignore_words_of_grpc);
  spdlog::shutdown();
}

int fail_early(const neuron::Error& error) {
  std::fprintf(stderr, "neuron-agent: %s\n", error.message.c_str());
  return static_cast<int>(neuron::agent::ExitCode::failed);
}

int misuse(const neuron::Error& error) {
  static_cast<void>(fail_early(error));
  return static_cast<int>(neuron::agent::ExitCode::usage);
}

int serve(const neuron::agent::Options& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the log that leaves ends nothing
  const auto signals = neuron::plugin::block_signals();
  if (!signals) return fail_early(signals.error());
  set_up_logging(options.log_level);
  const neuron::DescriptorLimit limit = neuron::raise_descriptor_limit();
  if (limit.now < kEnoughDescriptors) {
    spdlog::warn(
        "open file limit too low limit={} needed={}; raise the hard limit (ulimit -Hn, LimitNOFILE=), see "
        "docs/reliability.md#descriptors",
        limit.now, kEnoughDescriptors);
  }
  const bool claims = options.mode == neuron::agent::Mode::dra;
  const auto code =
      claims ? neuron::agent::run_dra_driver(options, *signals) : neuron::agent::run_device_plugin(options, *signals);
  end_logging();
  return static_cast<int>(code);
}

// The offer may depend on the machine: its instance type is read first.
neuron::Result<void> settle_offer_on(neuron::agent::Options& options, const std::string& directory) {
  TRY(neuron::agent::check_metrics_options(options));
  if (options.mode == neuron::agent::Mode::dra) return neuron::agent::settle_dra(options);
  if (options.node_groups.empty()) return neuron::agent::settle_offer(options, "");
  TRY_ASSIGN(const auto root, neuron::host::FsRoot::open(directory));
  return neuron::agent::settle_offer(options, neuron::host::read_instance_type(root));
}

int check_config(neuron::agent::Options options) {
  std::optional<neuron::host::RootSource> source;
  if (!options.node_groups.empty()) {
    auto opened = neuron::host::RootSource::open(options.root);
    if (!opened) return fail_early(opened.error());
    source = *std::move(opened);
  }
  const std::string directory = source ? source->directory() : options.root;
  if (const auto settled = settle_offer_on(options, directory); !settled) return misuse(settled.error());
  for (const std::string& line : neuron::agent::describe(options)) std::puts(line.c_str());
  for (const std::string& doubt : options.doubts) std::fprintf(stderr, "neuron-agent: %s\n", doubt.c_str());
  return 0;
}

int run(neuron::agent::Options options) {
  if (options.check_config) return check_config(options);
  const auto source = neuron::host::RootSource::open(options.root);
  if (!source) return fail_early(source.error());
  options.root = source->directory();
  if (const auto settled = settle_offer_on(options, options.root); !settled) return misuse(settled.error());
  if (!options.once) return serve(options);
  // One look, which every signal may end.
  set_up_logging(options.log_level);
  const bool claims = options.mode == neuron::agent::Mode::dra;
  const auto code = claims ? neuron::agent::print_slices_once(options) : neuron::agent::print_resources_once(options);
  end_logging();
  return static_cast<int>(code);
}

bool print(const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

// Prints a report of `check` or `explain`, whose verdicts have a value for "undetermined".
template <typename Report>
int tell(Report report) {
  using Verdict = decltype(report.verdict);
  if (!print(report.output)) {
    report.verdict = Verdict::cannot_tell;
    report.error = "cannot write to standard output";
  }
  if (!report.error.empty()) std::fprintf(stderr, "neuron-agent: %s\n", report.error.c_str());
  return static_cast<int>(report.verdict);
}

int withdraw(const neuron::agent::WithdrawOptions& options) {
  const auto withdrawn = neuron::agent::withdraw_node_status(options);
  if (withdrawn) return 0;
  return withdrawn.error().code == neuron::ErrorCode::invalid_argument ? misuse(withdrawn.error())
                                                                       : fail_early(withdrawn.error());
}

}  // namespace

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  mallopt(M_ARENA_MAX, 2);  // a dozen mostly idle threads would otherwise keep an arena each
  CLI::App app{"Neuron and EFA node agent: offers this node's devices to the kubelet."};
  app.name("neuron-agent");
  app.set_version_flag("--version", std::string("neuron-agent ") + neuron::kVersion);
  app.require_subcommand(1);
  neuron::agent::Options options;
  CLI::App* command = app.add_subcommand("run", "Serve this node's kubelet until SIGTERM");
  neuron::agent::add_options(*command, options);
  neuron::agent::CheckOptions check_options;
  CLI::App* check_command = app.add_subcommand("check", "Check this node and report problems");
  check_command->footer("Exit status: 0 no problem, 1 errors or warnings, 2 undetermined.");
  neuron::agent::add_check_options(*check_command, check_options);
  neuron::agent::WithdrawOptions withdraw_options;
  CLI::App* withdraw_command = app.add_subcommand("withdraw", "Remove the agent's labels and conditions of a node");
  neuron::agent::add_withdraw_options(*withdraw_command, withdraw_options);
  neuron::agent::ExplainOptions explain_options;
  CLI::App* explain_command = app.add_subcommand("explain", "Explain what a pod holds on this node");
  explain_command->require_subcommand(1);
  CLI::App* explain_pod = explain_command->add_subcommand("pod", "Explain what a pod holds on this node");
  explain_pod->footer("Exit status: 0 all healthy, 1 a problem, 2 undetermined or no such pod.");
  neuron::agent::add_explain_options(*explain_pod, explain_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(neuron::agent::ExitCode::usage);
  }
  if (explain_command->parsed()) return tell(neuron::agent::explain(explain_options));
  if (withdraw_command->parsed()) return withdraw(withdraw_options);
  return check_command->parsed() ? tell(neuron::agent::check_node(check_options)) : run(options);
}
