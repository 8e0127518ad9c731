#pragma once

#include <span>
#include <string_view>

namespace neuron::sim {

// What runs on accelerator nodes, in a few kinds. Passive data; the arguments are separated by blanks.
struct JobKind {
  std::string_view command;
  std::string_view tag;     // NEURON_PROCESS_TAG, "" = none
  double part_of_node = 0;  // fraction of all slots of the node that it asks for; at least one slot
  double low_level = 0;     // fraction of the time that a core is busy, mean over a wave: at least, and at most
  double high_level = 0;
  double wave = 0;        // how far busy and idle swing around the level
  double seconds = 0;     // how long it typically runs
  double inferences = 0;  // per busy second and core
  double traffic = 0;     // part of the line rate while the cores wait for each other
  double vcpus_per_slot = 0;
  double host_gib_per_slot = 0;
};

// The first three are what nodes like these are for. Static lifetime.
[[nodiscard]] std::span<const JobKind> job_kinds();

}  // namespace neuron::sim
