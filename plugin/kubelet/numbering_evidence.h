#pragma once

#include <string>
#include <string_view>

#include "agent/holdings/numbering.h"

// In which numbering the kubelet was given core ids, from its checkpoint (checkpoint.h): beside the ids of a container
// it keeps the answer with their device nodes, and the ids last listed. Read once after a start, as it costs more.
namespace neuron::plugin {

// Entries of neuroncore with their ids and the /dev/neuron<N> of AllocResp, and the highest id in RegisteredDevices.
// What is missing or of another type is left out; text that is no checkpoint gives nothing. Ids above 65535 do not
// count.
[[nodiscard]] holdings::NumberingEvidence parse_numbering_evidence(std::string_view checkpoint);

// Of the file at `path`; nothing when it cannot be read, which whoever reads the holdings says. Blocks on file reads.
[[nodiscard]] holdings::NumberingEvidence read_numbering_evidence(const std::string& path);

}  // namespace neuron::plugin
