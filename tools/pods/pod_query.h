#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/allocation.h"

namespace neuron::pods {

// Asks the kubelet's PodResources service who holds what. The question is put by a small program, neuron-pods, which is
// started for it and gone again: pods are asked for rarely, and so neither gRPC's 5 MB nor its threads are in programs
// that a person starts to look at a node, or keeps open; and a call that hangs is ended by a kill. The kubelet's List
// has a side effect (it forgets the devices of ended pods), so ask only when a person wants to know, and seldom.
//
// `socket`: "/var/lib/kubelet/pod-resources/kubelet.sock". Blocks for at most `deadline`; the program is killed then.
// Any thread. Errors: not_found (no such socket, or neuron-pods is not installed beside
// this program), permission_denied, unavailable (nobody listens), deadline_exceeded, data_corrupt.
[[nodiscard]] Result<std::vector<model::Allocation>> query_pods(const std::string& socket,
                                                                std::chrono::milliseconds deadline);

// The same with another program in the place of neuron-pods.
[[nodiscard]] Result<std::vector<model::Allocation>> query_pods_with(const std::string& program,
                                                                     const std::string& socket,
                                                                     std::chrono::milliseconds deadline);

}  // namespace neuron::pods
