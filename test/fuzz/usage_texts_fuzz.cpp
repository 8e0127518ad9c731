// Every parser of a usage sample's texts sees every input; results must keep the bounds their headers promise.

#include <cstdlib>
#include <string_view>

#include "agent/host/attributes.h"
#include "agent/host/proc_files.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_percent(double value) {
  return value >= 0 && value <= 1000;
}

bool is_printable(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return text.size() <= neuron::host::kMaxProcessText;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace neuron::host;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto power = parse_power(text)) {
    require(is_percent(power->min_percent) && is_percent(power->max_percent) && is_percent(power->average_percent));
  }
  if (const auto times = parse_cpu_times(text)) require(times->cpu_count >= 0 && times->cpu_count <= kMaxCpus);
  if (const auto memory = parse_memory(text)) require(memory->available_bytes <= memory->total_bytes);
  if (parse_process_times(text)) require(text.find(')') != std::string_view::npos);
  if (const auto bytes = parse_resident(text, 4096)) require(*bytes % 4096 == 0);
  require(is_printable(parse_command(text)));
  if (const auto tag = parse_tag(text)) require(!tag->empty() && is_printable(*tag));
  return 0;
}
