#include "tools/neuron-sim/load_command.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <memory>

#include "agent/base/parse.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/load_host.h"
#include "tools/neuron-sim/load_report.h"
#include "tools/neuron-sim/load_workload.h"

namespace neuron::sim {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr int kExitPlayed = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kMaxSteps = 1000000;

// Blocks the signals that end the program, so that one ends a wait instead.
class EndSignals {
 public:
  EndSignals() {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM}) ::sigaddset(&signals_, signal);
    struct sigaction hangup {};
    const bool ignored = ::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;  // nohup
    if (!ignored) ::sigaddset(&signals_, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~EndSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Whether a signal came before that time.
  [[nodiscard]] bool came_before(Clock::time_point time) const {
    for (;;) {
      const nanoseconds left = std::max<nanoseconds>(0ns, time - Clock::now());
      const timespec wait{left / 1s, (left % 1s).count()};
      if (::sigtimedwait(&signals_, nullptr, &wait) >= 0) return true;
      if (left == 0ns) return false;
    }
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

// One workload on one host.
class Player {
 public:
  Player(LoadHost host, std::uint64_t seed, std::ostream& out)
      : host_(std::move(host)), workload_(host_.shape(), seed), report_(out) {}

  void begin(const std::string& directory) { report_.begin(directory, host_.shape(), host_.counts_live()); }
  [[nodiscard]] Result<void> step(microseconds length) {
    last_ = workload_.step(length);
    TRY(host_.write(last_));
    report_.note(last_, std::chrono::duration<double>(length).count());
    return {};
  }
  [[nodiscard]] Result<void> end() {
    TRY(host_.finish());
    report_.end(last_);
    return {};
  }

 private:
  LoadHost host_;
  Workload workload_;
  LoadReport report_;
  Activity last_;
};

Result<void> play_at_once(Player& player, int steps, microseconds step) {
  for (int i = 0; i < steps; ++i) TRY(player.step(step));
  return {};
}

// A step is as long as the time that really passed, so that counters and clock agree whatever delays a step.
Result<void> play_in_time(Player& player, microseconds step, std::optional<nanoseconds> length) {
  const EndSignals signals;
  const auto begin = Clock::now();
  auto last = begin - step;
  for (auto next = begin;;) {
    const auto now = Clock::now();
    const auto passed = std::chrono::duration_cast<microseconds>(now - last);
    if (passed > 0us) {
      TRY(player.step(passed));
      last += passed;
    }
    next = std::max(next + step, Clock::now());
    if (length && next - begin > *length) next = begin + *length;
    if (signals.came_before(next)) return {};
    if (length && Clock::now() - begin >= *length) return {};
  }
}

Result<void> run(const LoadCommand& command, std::ostream& out) {
  if (command.steps && !command.length.empty()) {
    return fail(ErrorCode::invalid_argument, "--for and --steps exclude each other");
  }
  if (command.steps && (*command.steps < 1 || *command.steps > kMaxSteps)) {
    return fail(ErrorCode::invalid_argument, "--steps must be 1 to 1000000");
  }
  auto step = parse_duration(command.step);
  if (!step || *step > 60s) return fail(ErrorCode::invalid_argument, "--step must be like 100ms, at most 60s");
  std::optional<nanoseconds> length;
  if (!command.length.empty()) {
    auto parsed = parse_duration(command.length);
    if (!parsed) return fail(ErrorCode::invalid_argument, "--for must be like 30s or 5m");
    length = *parsed;
  }
  TRY_ASSIGN(const Fd alone, claim_host(command.directory));
  TRY_ASSIGN(LoadHost host, LoadHost::open(command.directory));
  Player player(std::move(host), command.seed, out);
  player.begin(command.directory);
  TRY(command.steps ? play_at_once(player, *command.steps, *step) : play_in_time(player, *step, length));
  TRY(player.end());
  out.flush();
  if (!out) return fail(ErrorCode::internal, "cannot write to standard output; the load itself was played");
  return {};
}

// Empty for a number, else what is wrong. The parser itself takes -1 for the largest.
std::string check_seed(const std::string& text) {
  return parse_u64(text) ? "" : "must be a number from 0 on: " + text;
}

}  // namespace

void add_load_command(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<LoadCommand>();
  auto* load = app.add_subcommand("load", "Play a workload on a simulated node, until Ctrl-C");
  load->add_option("DIR", command->directory, "A simulated node")->required();
  load->add_option("--for", command->length, "Exit after this time, e.g. 30s")->envname("NEURON_SIM_FOR");
  load->add_option("--step", command->step, "Time between changes of the files\n(default 100ms)")
      ->envname("NEURON_SIM_STEP");
  load->add_option("--steps", command->steps, "Play this many steps at once, without\nwaiting, and exit")
      ->envname("NEURON_SIM_STEPS");
  load->add_option("--seed", command->seed, "Seed of the workload (default 1)")
      ->check(check_seed, "", "")
      ->envname("NEURON_SIM_SEED");
  load->callback([command, &exit_code] { exit_code = run_load_command(*command, std::cout, std::cerr); });
}

int run_load_command(const LoadCommand& command, std::ostream& out, std::ostream& errors) {
  const auto played = run(command, out);
  if (played) return kExitPlayed;
  errors << "neuron-sim: load: " << played.error().message << "\n";
  return played.error().code == ErrorCode::invalid_argument ? kExitUsage : kExitFailed;
}

}  // namespace neuron::sim
