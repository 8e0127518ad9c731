#include <cstdio>
#include <cstdlib>

#include "agent/rpc/pod_resources.h"
#include "tools/pods/pods.h"

namespace neuron::pods {

int print_pods(const std::string& socket, std::chrono::milliseconds deadline) {
  auto listed = rpc::PodResourcesClient(socket).list(deadline);
  if (!listed) {
    std::fprintf(stderr, "%s: %s\n", socket.c_str(), listed.error().message.c_str());
    return EXIT_FAILURE;
  }
  std::erase_if(*listed, [](const model::Allocation& one) { return one.ids.empty() || one.admin_access; });
  const std::string text = format_pod_lines(*listed);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace neuron::pods
