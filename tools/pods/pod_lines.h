#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/allocation.h"

// What the helper program neuron-pods writes on stdout and its caller reads: a first line with the version, one line
// per allocation (namespace, pod, container, resource or driver, claim and the ids, between tabs), a last line "end"
// that proves the answer whole. Pure functions.
namespace neuron::pods {

// Those of a node with 128 cores and a pod on each take 10 KiB.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{4} << 20U;

[[nodiscard]] std::string format_pod_lines(const std::vector<model::Allocation>& allocations);

// Errors: data_corrupt (another version, a line of too few parts, a name that is not printable UTF-8 or longer than
// 1024 bytes, not whole).
[[nodiscard]] Result<std::vector<model::Allocation>> parse_pod_lines(std::string_view text);

}  // namespace neuron::pods
