// The questions of kubectl-neuron about a cluster of which one list is foreign: why of each pod. The first
// byte is the kind of the list, 7 the answer of the agent.

#include <cstdlib>
#include <string>

#include "test/fuzz/small_cluster.h"
#include "tools/kubectl-neuron/why.h"

namespace {

using namespace neuron::fleet;  // NOLINT

void require(bool holds) {
  if (!holds) std::abort();
}

void require_plain(const std::string& text) {
  require(!text.empty() && text.find('\x1b') == std::string::npos);
}

void ask(const Documents& documents) {
  const Fleet fleet = make_fleet(documents);
  std::size_t asked = 0;
  for (const Pod& pod : fleet.pods) {
    if (++asked > 4) break;
    Effort effort = fuzz::effort_of(200);
    const Why answer = why(fleet, pod, &effort);
    require(exit_status(answer) >= 0 && exit_status(answer) <= 2);
    require(exit_status(answer) > 0 || answer.not_counted.empty());
    require_plain(why_text(answer));
    require_plain(why_json(answer));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);  // NOLINT
  ask(fuzz::documents_with(data[0] % (kKinds + 1), text));
  return 0;
}
