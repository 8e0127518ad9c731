#pragma once

#include "agent/base/result.h"
#include "agent/kube/server_version.h"
#include "plugin/dra/slice_layout.h"

// What servers and kubelets can do by their versions (docs/reference/dra.md#server-versions). Pure.
namespace neuron::plugin::dra {

// Whether a server's gates are open shows only in what it stores. Errors: failed_precondition before 1.34, in words.
[[nodiscard]] Result<SliceShape> shape_for(const kube::ServerVersion& server);

// Errors: failed_precondition for a kubelet that knows none of our protocols, or that loses every driver for good after
// half an hour (1.34.0, 1.34.1); in words.
[[nodiscard]] Result<void> check_kubelet(const kube::ServerVersion& kubelet);

}  // namespace neuron::plugin::dra
