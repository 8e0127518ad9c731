#pragma once

#include <string>

#include "agent/host/fs_root.h"
#include "tools/neuron-gather/collector.h"

namespace neuron::gather {

// The capture of a directory at a fixed time, nothing left out.
inline Capture capture_of(const std::string& directory, Commands commands = Commands::leave_out,
                          Identity identity = Identity::keep) {
  const auto root = host::FsRoot::open(directory);
  if (!root) return {};
  GatherRequest request;
  request.commands = commands;
  request.identity = identity;
  request.now = std::chrono::system_clock::time_point(std::chrono::seconds(1'795'243'200));  // 2026-11-21 08:00
  return gather(*root, request, [](const std::string&) { return true; });
}

inline std::string text_in(const Capture& capture, const std::string& path) {
  const Entry* entry = capture.find(path);
  return entry == nullptr ? "(not captured)" : entry->text;
}

}  // namespace neuron::gather
