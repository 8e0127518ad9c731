// Recorded driver answers are foreign text: whatever they say, what comes out is within its bounds.

#include <cstdlib>
#include <string_view>

#include "agent/host/attributes.h"
#include "agent/host/driver_query.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto answers = neuron::host::parse_recorded_answers(text, "fuzz.json");
  if (answers.problems.size() > 3) std::abort();
  if (answers.processes) {
    for (const auto& process : *answers.processes) {
      if (process.pid < 1) std::abort();
    }
  }
  if (answers.logical_to_physical) {
    for (const int core : *answers.logical_to_physical) {
      if (core < 0 || core >= neuron::host::kMaxCores) std::abort();
    }
  }
  return 0;
}
