// What neuron-ls costs as a whole program, start to exit: the median processor time of the real program on a host
// directory, and of a floor program that makes the plain system calls which any reader needs for the same knowledge
// (plain_calls.h); in turn in one run. The floor is this program started anew, so that both pay for a process. Usage:
// ls_bench [HOST_DIRECTORY]; without one a simulated trn2.48xlarge is made and removed.

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/bench/plain_calls.h"
#include "test/fakes/paths.h"
#include "tools/neuron-ls/node_reader.h"
#include "tools/neuron-sim/host_plan.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// The floor: makes the calls of `list`, one per line.
int make_plainly(const char* list) {
  std::vector<neuron::bench::PlainCall> calls;
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) calls.push_back(neuron::bench::from_line(line));
  return neuron::bench::make_plainly(calls) ? 0 : 1;
}

// Processor time from exec to exit: what others do meanwhile does not count.
double milliseconds(const Words& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  int status = 0;
  rusage used{};
  if (::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ) != 0) std::abort();
  if (::wait4(pid, &status, 0, &used) != pid || status != 0) std::abort();
  ::posix_spawn_file_actions_destroy(&actions);
  const auto milli = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
  };
  return milli(used.ru_utime) + milli(used.ru_stime);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void compare(const char* what, const Words& listing, const Words& floor) {
  constexpr int kRounds = 101;
  std::vector<double> listings;
  std::vector<double> floors;
  for (int round = 0; round < kRounds; ++round) {
    listings.push_back(milliseconds(listing));
    floors.push_back(milliseconds(floor));
  }
  std::printf("%-28s %6.2f ms, plain %6.2f ms, ratio %.2f\n", what, median(listings), median(floors),
              median(listings) / median(floors));
}

std::size_t write_list(const std::string& host, const std::string& list) {
  auto opened = neuron::host::FsRoot::open(host);
  if (!opened) return 0;
  const auto root = std::make_shared<const neuron::host::FsRoot>(*std::move(opened));
  const neuron::ls::Options options;
  const auto calls = neuron::bench::calls_of([&] { (void)neuron::ls::NodeReader(root, options).read(); });
  std::ofstream out(list);
  for (const auto& call : calls) out << neuron::bench::to_line(call);
  return calls.size();
}

int measure(const std::string& self, const std::string& host, const std::string& list) {
  const std::size_t calls = write_list(host, list);
  if (calls == 0) return 1;
  std::printf("%zu files, directories, links and looks\n", calls);
  const std::string program = neuron::fakes::bin_dir() + "/neuron-ls";
  const Words floor = {self, "--floor", list};
  compare("neuron-ls", {program, "--root", host}, floor);
  compare("neuron-ls -j", {program, "-j", "--root", host}, floor);
  compare("neuron-ls --health --efa", {program, "--health", "--efa", "--root", host}, floor);
  compare("neuron-ls, ours as JSON", {program, "--output-format", "json", "--root", host}, floor);
  compare("start and end (--version)", {program, "--version"}, {self, "--floor", "/dev/null"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--floor") return make_plainly(argv[2]);
  std::string pattern = (fs::temp_directory_path() / "neuron-bench-XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  if (made == nullptr) return 1;
  const std::string directory = made;
  std::string host = directory + "/host";
  if (argc > 1) host = argv[1];
  neuron::sim::HostPlan plan;
  plan.instance_type = "trn2.48xlarge";
  const auto written = argc > 1 ? neuron::Result<void>() : neuron::sim::write_host(plan, host);
  if (!written) std::fprintf(stderr, "ls_bench: %s\n", written.error().message.c_str());
  const int code = written ? measure(fs::read_symlink("/proc/self/exe").string(), host, directory + "/files") : 1;
  std::error_code ignored;
  fs::remove_all(directory, ignored);
  return code;
}
