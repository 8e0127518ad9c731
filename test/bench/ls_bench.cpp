// What neuron-ls costs as a whole program, start to exit: the median time of the real program on a host directory, and
// of a floor program that opens, reads and closes, by absolute path, exactly the files that neuron-ls reads; in turn in
// one run. The floor is this program started anew, so that both pay for a process.
// Usage: ls_bench [HOST_DIRECTORY]; without one a simulated trn2.48xlarge is made and removed.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/bench/read_recorder.h"
#include "tools/neuron-ls/node_reader.h"
#include "tools/neuron-sim/host_writer.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// The floor: reads the files named in `list`, one per line.
int read_plainly(const char* list) {
  std::array<char, 4096> buffer;  // NOLINT: read() fills it
  std::ifstream names(list);
  for (std::string name; std::getline(names, name);) {
    const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || neuron::bench::plain_read(fd, buffer.data(), buffer.size()) < 0) return 1;
    ::close(fd);
  }
  return 0;
}

double milliseconds(const Words& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  int status = 0;
  if (::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ) != 0) std::abort();
  if (::waitpid(pid, &status, 0) != pid || status != 0) std::abort();
  const auto end = std::chrono::steady_clock::now();
  ::posix_spawn_file_actions_destroy(&actions);
  return std::chrono::duration<double, std::milli>(end - start).count();
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
  const auto root = neuron::host::FsRoot::open(host);
  if (!root) return 0;
  const neuron::ls::Options options;
  const auto files = neuron::bench::files_read_by([&] { (void)neuron::ls::NodeReader(*root, options).read(); });
  std::ofstream out(list);
  for (const std::string& file : files) out << file << '\n';
  return files.size();
}

int measure(const std::string& self, const std::string& host, const std::string& list) {
  const std::size_t files = write_list(host, list);
  if (files == 0) return 1;
  std::printf("%zu files\n", files);
  const std::string program = std::string(NEURON_BIN_DIR) + "/neuron-ls";
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
  if (argc == 3 && std::string(argv[1]) == "--floor") return read_plainly(argv[2]);
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
