#include "tools/neuron-sim/commands.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <memory>
#include <set>

#include "agent/base/parse.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/load_host.h"
#include "tools/neuron-sim/load_workload.h"

namespace neuron::sim {
namespace {

constexpr double kSummarySeconds = 5;

std::string name_of(const ProcessActivity& process) {
  const std::string& program = process.arguments.front();
  const std::string name = process.tag.empty() ? program.substr(program.rfind('/') + 1) : process.tag;
  return std::to_string(process.pid) + " " + name + " on neuron " + format_int_list(process.devices);
}

// Prints the progress of a load: one line when a process starts or ends, and a summary every few seconds of the load's
// time. Not thread-safe.
class LoadReport {
 public:
  explicit LoadReport(std::ostream& out) : out_(out) {}  // `out` must outlive it

  void begin(const std::string& directory, const LoadShape& shape, bool counts_live) {
    std::size_t cores = 0;
    for (const LoadDevice& device : shape.devices) cores += device.cores.size();
    out_ << "playing on " << directory << ": " << counted(shape.devices.size(), "device") << ", "
         << counted(cores, "core") << ", " << counted(shape.efas.size(), "EFA interface") << "\n";
    if (!counts_live) out_ << "this driver counts busy time only when a process ends (live from 2.30.2)\n";
    out_.flush();
  }

  void note(const Activity& activity, double step_seconds) {
    note_processes(activity);
    since_summary_ += step_seconds;
    for (const CoreActivity& core : activity.cores) busy_ += static_cast<double>(core.busy_us) * 1e-6;
    for (const EfaActivity& efa : activity.efas) {
      const auto sent = efa.growth.find("ports/1/hw_counters/tx_bytes");
      if (sent != efa.growth.end()) sent_bytes_ += static_cast<double>(sent->second);
    }
    if (activity.seconds >= next_summary_) summarise(activity);
  }

  void end(const Activity& activity) {
    summarise(activity);
    out_ << "left unchanged: " << counted(activity.processes.size(), "process") << " still listed, counters stopped\n";
    out_.flush();
  }

 private:
  void note_processes(const Activity& activity) {
    std::set<int> alive;
    for (const ProcessActivity& process : activity.processes) {
      alive.insert(process.pid);
      const auto [at, is_new] = processes_.emplace(process.pid, name_of(process));
      if (is_new) out_ << fmt::format("{:6.1f} s  begins: {}\n", activity.seconds, at->second);
    }
    std::erase_if(processes_, [&](const auto& entry) {
      if (alive.contains(entry.first)) return false;
      out_ << fmt::format("{:6.1f} s  ends:   {}\n", activity.seconds, entry.second);
      return true;
    });
    out_.flush();
  }

  void summarise(const Activity& activity) {
    if (since_summary_ <= 0) return;
    const auto busy_devices =
        std::ranges::count_if(activity.devices, [](const auto& device) { return !device.processes.empty(); });
    const double percent =
        100 * busy_ / since_summary_ / static_cast<double>(std::max<std::size_t>(1, activity.cores.size()));
    out_ << fmt::format("{:6.1f} s  {} processes on {} of {} devices; cores {:.0f} % busy; EFA sends {:.1f} GB/s\n",
                        activity.seconds, activity.processes.size(), busy_devices, activity.devices.size(), percent,
                        sent_bytes_ / since_summary_ * 1e-9);
    out_.flush();
    next_summary_ = activity.seconds + kSummarySeconds;
    since_summary_ = busy_ = sent_bytes_ = 0;
  }

  std::ostream& out_;
  std::map<int, std::string> processes_;  // by pid, as they were announced
  double next_summary_ = 2;
  double since_summary_ = 0;  // seconds, as the next two
  double busy_ = 0;           // of all cores together
  double sent_bytes_ = 0;
};

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr int kMaxSteps = 1000000;

// Blocks the signals that end the program; a pending one ends a wait.
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

// The flags of `neuron-sim load` as given. Passive data.
struct LoadCommand {
  std::string directory;
  std::string length;  // --for, "" = until a signal
  std::string step = "100ms";
  std::optional<int> steps;  // so many steps at once, without waiting
  std::uint64_t seed = 1;
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

// A step has the length of the time that passed, so that counters and clock agree whatever delays a step.
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

// The error, or "" for a number. The parser itself would accept -1 as the largest.
std::string check_seed(const std::string& text) {
  return parse_u64(text) ? "" : "must be a number from 0 on: " + text;
}

// In real time until --for has passed or SIGINT, SIGTERM or SIGHUP arrives, or --steps steps at once. Returns the exit
// code, as in neuron-sim(1): 1 no simulated host, another neuron-sim load runs on it, or it or `out` cannot be written.
int run_load_command(const LoadCommand& command, std::ostream& out, std::ostream& errors) {
  const auto played = run(command, out);
  if (played) return kExitOk;
  errors << "neuron-sim: load: " << played.error().message << "\n";
  return played.error().code == ErrorCode::invalid_argument ? kExitUsage : kExitFailed;
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

}  // namespace neuron::sim
