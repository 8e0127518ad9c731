// neuron-pods SOCKET MILLISECONDS: asks the kubelet once and prints the answer for neuron-ls and neuron-top (pods.h),
// so that they need no gRPC. Exit status 0, or 1 with one line on stderr.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/rpc/pod_resources.h"
#include "tools/pods/pods.h"

namespace neuron::pods {
namespace {

int complain(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return EXIT_FAILURE;
}

int run(const std::string& socket, std::chrono::milliseconds deadline) {
  auto listed = rpc::PodResourcesClient(socket).list(deadline);
  if (!listed) return complain(socket + ": " + listed.error().message);
  std::erase_if(*listed, [](const model::Allocation& one) { return one.ids.empty() || one.admin_access; });
  const std::string text = format_pod_lines(*listed);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace neuron::pods

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  constexpr int kLongest = 60'000;
  const auto milliseconds = argc == 3 ? neuron::parse_int(argv[2], 1, kLongest) : std::nullopt;
  if (!milliseconds) return neuron::pods::complain("usage: neuron-pods SOCKET MILLISECONDS (a helper of neuron-ls)");
  return neuron::pods::run(argv[1], std::chrono::milliseconds(*milliseconds));
}
