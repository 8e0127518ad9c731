#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/neuron-gather/capture.h"

namespace neuron::gather {

inline constexpr std::string_view kManifestPath = "MANIFEST.json";

enum class Origin { live, directory };  // a machine, or a directory that was not captured by this program

// What a capture says of itself. Passive data.
struct Manifest {
  std::string tool_version;
  std::string captured_at;    // UTC, "2026-11-21T06:40:00Z"
  std::string instance_type;  // sys/devices/virtual/dmi/id/product_name; "" unknown
  std::string kernel;         // proc/sys/kernel/osrelease; "" unknown
  Origin origin = Origin::live;
  bool with_commands = false;
  bool anonymised = false;
  bool complete = true;  // false: the bounds of a capture were reached
};

// The file MANIFEST.json: the members above and what could not be read, of `capture`, sorted. `previous` is the text of
// the manifest that the captured root already had, if any: then what it says of time, version and origin stays, and its
// unreadable things are joined, so that capturing a capture changes nothing. A text that is no manifest counts as none.
// Pure.
[[nodiscard]] std::string manifest_text(Manifest manifest, const Capture& capture,
                                        const std::optional<std::string>& previous);

}  // namespace neuron::gather
