// What a scan costs over the bare system calls: median time of Scanner::scan() divided by the median time of open, read
// and close, by absolute path, of exactly the files that one scan reads; both in turn in one run.
// Usage: scan_bench [HOST_DIRECTORY]; without one a simulated trn2.48xlarge is made and removed.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "agent/host/scanner.h"
#include "test/bench/read_recorder.h"
#include "tools/neuron-sim/host_writer.h"

namespace {

using Seconds = std::chrono::duration<double>;

void read_plainly(const std::vector<std::string>& files) {
  std::array<char, 4096> buffer;  // NOLINT: read() fills it
  for (const std::string& file : files) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || neuron::bench::plain_read(fd, buffer.data(), buffer.size()) < 0) std::abort();
    ::close(fd);
  }
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void compare(const char* what, const std::function<void()>& scan) {
  constexpr int kRounds = 301;
  const auto files = neuron::bench::files_read_by(scan);
  std::vector<double> scans;
  std::vector<double> plain;
  for (int round = 0; round < kRounds; ++round) {
    scans.push_back(seconds(scan));
    plain.push_back(seconds([&] { read_plainly(files); }));
  }
  std::printf("%s: %zu files, scan %.0f us, plain %.0f us, ratio %.2f\n", what, files.size(), median(scans) * 1e6,
              median(plain) * 1e6, median(scans) / median(plain));
}

int measure(const std::string& directory) {
  const auto root = neuron::host::FsRoot::open(directory);
  if (!root) {
    std::fprintf(stderr, "scan_bench: %s\n", root.error().message.c_str());
    return 1;
  }
  constexpr neuron::host::Scanner::Options kWithoutTopology{.with_topology = false, .with_processes = true};
  std::size_t devices = 0;
  neuron::host::Scanner repeated(*root, {});
  (void)repeated.scan();
  compare("repeated scan", [&] { devices = repeated.scan().devices.size(); });
  compare("first scan (without hwloc)", [&] { (void)neuron::host::Scanner(*root, kWithoutTopology).scan(); });
  std::vector<double> loads;
  for (int round = 0; round < 5; ++round) {
    loads.push_back(seconds([&] { (void)neuron::host::load_machine_topology(*root); }));
  }
  std::printf("hwloc, once per change of inventory: %.0f us\n%zu devices\n", median(loads) * 1e6, devices);
  return devices == 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return measure(argv[1]);
  std::string pattern = (std::filesystem::temp_directory_path() / "neuron-bench-XXXXXX").string();
  const char* directory = ::mkdtemp(pattern.data());
  if (directory == nullptr) return 1;
  neuron::sim::HostPlan plan;
  plan.instance_type = "trn2.48xlarge";
  const auto written = neuron::sim::write_host(plan, directory);
  if (!written) std::fprintf(stderr, "scan_bench: %s\n", written.error().message.c_str());
  const int code = written ? measure(directory) : 1;
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return code;
}
