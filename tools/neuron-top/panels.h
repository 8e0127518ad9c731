#pragma once

#include <string>
#include <vector>

#include "tools/neuron-top/history.h"
#include "tools/neuron-top/table.h"
#include "tools/neuron-top/view_model.h"
#include "tools/neuron-top/view_state.h"

// The lower part of the screen, one table per panel. Pure functions.
namespace neuron::top {

// Everything a picture is made of.
struct Scene {
  const ViewModel& model;
  const History& history;
  const ViewState& state;
  render::Charset charset = render::Charset::utf8;
};

[[nodiscard]] Table condition_table(const Scene& scene);  // health, ECC, power
[[nodiscard]] Table efa_table(const Scene& scene);
[[nodiscard]] Table process_table(const Scene& scene);
[[nodiscard]] Table pod_table(const Scene& scene);
[[nodiscard]] Table history_table(const Scene& scene, int columns);

// The table of the panel that was chosen, and its heading.
[[nodiscard]] Table panel_table(const Scene& scene, int columns);
[[nodiscard]] std::string panel_title(const Scene& scene);

// Keys of the rows of the panel, from the top.
[[nodiscard]] std::vector<std::string> panel_rows(const ViewModel& model, const ViewState& state);

// How a verdict looks: "healthy" green, "unhealthy" red.
[[nodiscard]] Role role_of(model::HealthState state);

}  // namespace neuron::top
