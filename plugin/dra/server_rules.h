#pragma once

#include <string_view>

#include "agent/base/result.h"
#include "agent/kube/server_version.h"
#include "plugin/dra/slice_layout.h"

// What servers and kubelets can do by their versions (docs/reference/dra.md#server-versions). Pure.
namespace neuron::plugin::dra {

// Whether a server's gates are open shows only in what it stores. Errors: failed_precondition before 1.34, in words.
[[nodiscard]] Result<SliceShape> shape_for(const kube::ServerVersion& server);

// What the agent would write for a server that nobody asks, as people write it: "1.36.3", "v1.34.2-eks-113cf36", and
// the gates that are not as that version has them, as in "1.34.2,DRAPartitionableDevices=true" or
// "1.36.3,DRADeviceTaints=false". Errors: invalid_argument for other text; those of shape_for().
[[nodiscard]] Result<LayoutOptions> layout_for(std::string_view server);

// Errors: failed_precondition for a kubelet that knows none of our protocols, or that loses every driver for good after
// half an hour (1.34.0, 1.34.1); in words.
[[nodiscard]] Result<void> check_kubelet(const kube::ServerVersion& kubelet);

}  // namespace neuron::plugin::dra
