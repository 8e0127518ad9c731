// neuron-topology ROOT: asks hwloc about the machine below ROOT and prints the answer for neuron-agent
// (agent/host/machine_topology.h). A separate program because hwloc takes its root from the environment of the process,
// and because the files it reads may make it hang, abort or ask for all memory. Exit status 0, or 1 with one line on
// stderr.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "agent/base/fd.h"
#include "agent/host/machine_topology.h"

namespace neuron {
namespace {

int complain(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return EXIT_FAILURE;
}

// Ends with its parent process, or after kSeconds at the latest.
void set_limits() {
  constexpr unsigned kSeconds = 10;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kSeconds);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // shadow memory takes terabytes of addresses
  const rlimit memory{std::size_t{512} << 20U, std::size_t{512} << 20U};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
}

int run(const std::string& directory) {
  const auto root = host::FsRoot::open(directory);
  if (!root) return complain(root.error().message);
  const auto machine = host::read_with_hwloc(*root);
  if (!machine) return complain(machine.error().message);
  const std::string text = host::format_topology(*machine);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace neuron

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  if (argc != 2) return neuron::complain("usage: neuron-topology ROOT (a helper of neuron-agent)");
  neuron::set_limits();
  return neuron::run(argv[1]);
}
