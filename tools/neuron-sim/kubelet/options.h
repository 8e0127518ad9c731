#pragma once

#include <chrono>
#include <functional>
#include <string>

// How a FakeKubelet behaves: as the real kubelet 1.36 with its bugs. Passive data.
namespace neuron::sim {

// How Register answers. closes: the socket accepts connections and closes them, as a kubelet that is going down.
enum class RegisterFault { none, error, hangs, closes };

// How PodResources answers. garbage: bytes that are no message; oversized: a List and GetAllocatableResources of 20
// MiB, where a gRPC client accepts 4 by default and 16 is the advice.
enum class PodResourcesFault { none, error, hangs, garbage, oversized };

struct KubeletFaults {
  RegisterFault registration = RegisterFault::none;
  PodResourcesFault pod_resources = PodResourcesFault::none;
};

// The topology manager's policy, scope container. A simplified merge of hints: the smallest set of NUMA nodes that can
// serve every resource of the container.
enum class NumaPolicy { none, best_effort, single_numa_node };

// Where an admission stands when KubeletOptions::on_step is called for one resource of one container. The manager's
// lock is free at each of them, as in the real kubelet: this is the window of its double allocation race.
enum class AdmissionStep { before_preferred, before_allocate, after_allocate };

struct KubeletOptions {
  unsigned seed = 1;  // of the order of resources and ids
  KubeletFaults faults = {};
  NumaPolicy numa_policy = NumaPolicy::none;
  std::chrono::milliseconds dial_timeout{10'000};  // Register's call back to the plugin
  // Called in the thread of admit(), no lock held. May call anything but admit() and stop().
  std::function<void(AdmissionStep, const std::string& resource)> on_step = {};
  // One line per event ("registered aws.amazon.com/neuron from neuron-1.sock"). Any thread, no lock held; must not
  // call back.
  std::function<void(const std::string& line)> on_event = {};
};

}  // namespace neuron::sim
