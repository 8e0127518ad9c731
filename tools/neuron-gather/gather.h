#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "agent/host/fs_root.h"
#include "tools/neuron-gather/capture.h"
#include "tools/neuron-gather/collector.h"

namespace neuron::gather {

enum class Identity { keep, anonymise };

struct GatherRequest {
  Commands commands = Commands::leave_out;
  Identity identity = Identity::keep;
  std::chrono::system_clock::time_point now;  // for the manifest
};

// Captures a machine, with its MANIFEST.json. A capture of a capture equals it. `permit` as in Collector.
// Blocks on file reads and the driver; any thread.
[[nodiscard]] Capture gather(const host::FsRoot& root, const GatherRequest& request, const Collector::Permit& permit);

// The captured file's text without white space around it, "" when there is none.
[[nodiscard]] std::string captured_text(const Capture& capture, const std::string& path);

inline constexpr const char* kProductName = "sys/devices/virtual/dmi/id/product_name";

}  // namespace neuron::gather
