#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/allocation.h"

// The kubelet's allocations for programs without gRPC: `neuron-agent pods` asks the kubelet and prints lines.
namespace neuron::pods {

// Asks the kubelet's PodResources service for all allocations but those for admin access, by a run of
// `neuron-agent pods`:
// gRPC's 5 MB and its threads stay out of the interactive programs, and a call that hangs is ended by a kill. The
// kubelet's List has a side effect (it forgets the devices of ended pods), so call it seldom and on request only.
//
// `socket`: "/var/lib/kubelet/pod-resources/kubelet.sock". Blocks for at most `deadline`; the program is killed then.
// Any thread. Errors: not_found (no such socket, or neuron-agent is not installed beside this program),
// permission_denied, unavailable (nothing listens), deadline_exceeded, data_corrupt.
[[nodiscard]] Result<std::vector<model::Allocation>> query_pods(const std::string& socket,
                                                                std::chrono::milliseconds deadline);

// query_pods() with another program in the place of `neuron-agent pods`; it gets the socket and the milliseconds.
[[nodiscard]] Result<std::vector<model::Allocation>> query_pods_with(std::vector<std::string> command,
                                                                     const std::string& socket,
                                                                     std::chrono::milliseconds deadline);

// The output of `neuron-agent pods SOCKET MILLISECONDS`, which exits with 0, or with 1 and one line on stderr: a first
// line with the version, one line per allocation (namespace, pod, container, resource or driver, claim and the ids,
// between tabs), a last line "end" that proves the answer complete. Pure.
[[nodiscard]] std::string format_pod_lines(const std::vector<model::Allocation>& allocations);

// Errors: data_corrupt (another version, a line with fewer than 5 fields, a name that is not printable UTF-8 or longer
// than 1024 bytes, no last line).
[[nodiscard]] Result<std::vector<model::Allocation>> parse_pod_lines(std::string_view text);

// A node with 128 cores and a pod on each needs 10 KiB.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{4} << 20U;

}  // namespace neuron::pods
