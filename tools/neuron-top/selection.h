#pragma once

#include <string_view>
#include <vector>

#include "tools/neuron-top/view_model.h"
#include "tools/neuron-top/view_state.h"

namespace neuron::top {

// The devices, interfaces and processes that the chosen tab and filter let through, in the chosen order. The pointers
// live as long as the model.
[[nodiscard]] std::vector<const DeviceView*> shown_devices(const ViewModel& model, const ViewState& state);
[[nodiscard]] std::vector<const EfaView*> shown_efas(const ViewModel& model, const ViewState& state);
[[nodiscard]] std::vector<const ProcessView*> shown_processes(const ViewModel& model, const ViewState& state);

[[nodiscard]] std::string_view to_string(Sort sort);

}  // namespace neuron::top
