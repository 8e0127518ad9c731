#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/answers.h"
#include "plugin/dra/slices/pool.h"

// From a pool to slices that a server takes. Servers differ by version and by feature gates, and silently drop the
// fields of a gate that is closed (docs/reference/dra.md#server-versions). Pure.
namespace neuron::plugin::dra {

enum class SliceShape {
  plain,     // whole devices and interfaces: no counters, so nothing that overlaps
  combined,  // counters and all that use them in one slice (1.34)
  split,     // counters in a slice of their own (from 1.35)
};

struct LayoutOptions {
  SliceShape shape = SliceShape::split;
  bool taints = true;  // the server keeps them
};

inline constexpr const char* kCounterSet = "cores";

// Of one slice: counters or devices; both in a combined one.
struct SliceContent {
  Counters counters{};                // of the set kCounterSet; empty: the slice has no set
  std::vector<PoolDevice> devices{};  // in the order in which the scheduler tries them
};

struct Layout {
  std::vector<SliceContent> slices;   // in the order of their names; empty: nothing to publish
  std::vector<std::string> left_out;  // sentences: devices of the pool that are not in the slices, and why
};

// Fills slices within the limits of docs/reference/dra.md#limits. Without counters, cores and groups stay only where a
// claim holds them, and devices that overlap with these go; without taints, unhealthy devices that no claim holds go.
[[nodiscard]] Layout lay_out(const Pool& pool, const LayoutOptions& options);

// The shape for a version with open gates; whether they are open shows only in the stored objects. Errors:
// failed_precondition before 1.34.
[[nodiscard]] Result<SliceShape> shape_for(const kube::ServerVersion& server);

// The layout for a server that is not asked, from its version and the gates that differ from its defaults: "1.36.3",
// "v1.34.2-eks-113cf36", "1.34.2,DRAPartitionableDevices=true", "1.36.3,DRADeviceTaints=false". Errors:
// invalid_argument for other text; those of shape_for().
[[nodiscard]] Result<LayoutOptions> layout_for(std::string_view server);

// Errors: failed_precondition for a kubelet that knows none of the driver's protocols, or that permanently loses every
// driver after half an hour (1.34.0, 1.34.1).
[[nodiscard]] Result<void> check_kubelet(const kube::ServerVersion& kubelet);

}  // namespace neuron::plugin::dra
