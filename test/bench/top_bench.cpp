// What neuron-top costs: time of --once beyond its wait, CPU per refresh and resident memory of the live screen at 1 Hz
// on a pty, on a simulated trn2.48xlarge, idle and under `neuron-sim load`. Takes a minute.
// Usage: top_bench [SECONDS]; the programs are looked for beside it, in ../bin.

#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <poll.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agent/base/parse.h"
#include "tools/neuron-sim/host_plan.h"

namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

fs::path programs;  // directory of the programs

void run_program(const std::string& name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), (programs / name).string());
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  ::_exit(127);
}

struct Cost {
  double wall_s = 0;
  double cpu_s = 0;
  long resident_kib = 0;
};

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

Cost reap(pid_t pid, steady_clock::time_point start) {
  int status = 0;
  rusage usage{};
  if (::wait4(pid, &status, 0, &usage) != pid || status != 0) {
    std::fprintf(stderr, "top_bench: neuron-top ended with %d\n", status);
    std::exit(1);
  }
  return {Seconds(steady_clock::now() - start).count(), seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
          usage.ru_maxrss};
}

Cost run_once(const std::string& root) {
  const auto start = steady_clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    (void)!std::freopen("/dev/null", "w", stdout);
    run_program("neuron-top", {"--root", root, "--once", "--interval", "200ms"});
  }
  return reap(pid, start);
}

long resident_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtol(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

// The live screen for some seconds, with one key to choose the view.
Cost run_live(const std::string& root, char view, int seconds) {
  const winsize size{50, 160, 0, 0};
  const auto start = steady_clock::now();
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    ::setenv("TERM", "xterm-256color", 1);
    ::setenv("LC_ALL", "C.UTF-8", 1);
    run_program("neuron-top", {"--root", root});
  }
  (void)!::write(terminal, &view, 1);
  const auto until = start + std::chrono::seconds(seconds);
  std::array<char, 65536> buffer;  // NOLINT: read() fills it
  while (steady_clock::now() < until) {
    pollfd fd{terminal, POLLIN, 0};
    if (::poll(&fd, 1, 50) > 0 && ::read(terminal, buffer.data(), buffer.size()) <= 0) break;
  }
  const long resident = resident_kib(pid);
  (void)!::write(terminal, "q", 1);
  while (::read(terminal, buffer.data(), buffer.size()) > 0) {
  }
  Cost cost = reap(pid, start);
  cost.resident_kib = resident;
  ::close(terminal);
  return cost;
}

void measure(const char* what, const std::string& root, int seconds) {
  std::vector<double> once;
  for (int i = 0; i < 15; ++i) once.push_back(run_once(root).wall_s - 0.2);
  std::sort(once.begin(), once.end());
  std::printf("%s: --once without its wait: median %.1f ms, largest %.1f ms\n", what, once[once.size() / 2] * 1e3,
              once.back() * 1e3);
  for (const char view : {'m', 'c', 'e', 'p', 'g'}) {
    const Cost start = run_live(root, view, 3);
    const Cost cost = run_live(root, view, 3 + seconds);
    const double per_refresh = (cost.cpu_s - start.cpu_s) / seconds;
    std::printf("%s: view %c: %.2f ms CPU per refresh (%.2f %% of a core at 1 Hz), %.1f MiB resident\n", what, view,
                per_refresh * 1e3, per_refresh * 100, static_cast<double>(cost.resident_kib) / 1024);
    std::fflush(stdout);
  }
}

int run(const std::string& root, int seconds) {
  neuron::sim::HostPlan plan;
  plan.instance_type = "trn2.48xlarge";
  if (const auto written = neuron::sim::write_host(plan, root); !written) {
    std::fprintf(stderr, "top_bench: %s\n", written.error().message.c_str());
    return 1;
  }
  measure("idle", root, seconds);
  const pid_t load = ::fork();
  if (load == 0) {
    (void)!std::freopen("/dev/null", "w", stdout);
    run_program("neuron-sim", {"load", root});
  }
  measure("busy", root, seconds);
  ::kill(load, SIGTERM);
  ::waitpid(load, nullptr, 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto seconds = neuron::parse_int(argc > 1 ? argv[1] : "10", 1, 600);
  if (!seconds) return 1;
  std::error_code ignored;
  programs = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / "bin";
  const bool has_memory = ::access("/dev/shm", W_OK) == 0;
  std::string pattern = (has_memory ? fs::path("/dev/shm") : fs::temp_directory_path()) / "neuron-bench-XXXXXX";
  const char* directory = ::mkdtemp(pattern.data());
  if (directory == nullptr) return 1;
  const int code = run((fs::path(directory) / "host").string(), *seconds);
  fs::remove_all(directory, ignored);
  return code;
}
