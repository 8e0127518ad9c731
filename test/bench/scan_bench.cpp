// What a scan costs over the bare system calls: median time of Scanner::scan() divided by the median time of what any
// reader has to ask the kernel for the same knowledge (test/bench/plain_calls.h): each file is read once, each
// directory listed, each link read and each absent file looked for, by absolute path; both in turn in one run, in
// processor time. Usage: scan_bench [HOST_DIRECTORY]; without one a simulated trn2.48xlarge is made and removed.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "agent/host/scanner.h"
#include "test/bench/plain_calls.h"
#include "tools/neuron-sim/host_plan.h"

namespace {

// Of this thread on a processor: what others do meanwhile does not count.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds(const std::function<void()>& work) {
  const double start = processor_seconds();
  work();
  return processor_seconds() - start;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void compare(const char* what, const std::function<void()>& scan) {
  constexpr int kRounds = 301;
  const auto calls = neuron::bench::calls_of(scan);
  std::vector<double> scans;
  std::vector<double> plain;
  for (int round = 0; round < kRounds; ++round) {
    scans.push_back(seconds(scan));
    plain.push_back(seconds([&] {
      if (!neuron::bench::make_plainly(calls)) std::abort();
    }));
  }
  const auto count = [&](neuron::bench::PlainCall::Kind kind) {
    return std::count_if(calls.begin(), calls.end(), [&](const auto& call) { return call.kind == kind; });
  };
  using Kind = neuron::bench::PlainCall::Kind;
  std::printf("%s: %td files, %td directories, %td links, %td looks; scan %.0f us, plain %.0f us, ratio %.2f\n", what,
              count(Kind::read), count(Kind::list), count(Kind::link), count(Kind::look), median(scans) * 1e6,
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
