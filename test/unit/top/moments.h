#pragma once

#include <string>

#include "tools/render/canvas.h"
#include "tools/screen/panels.h"
#include "tools/screen/view_model.h"
#include "tools/screen/view_state.h"

// Hand-built moments of machines of the catalogue: fixed values, no files, no clocks.
namespace neuron::test {

// A sound, busy machine: utilization, memory, power, EFA traffic, two processes on devices 0 to 3.
[[nodiscard]] screen::Moment busy_moment(const std::string& instance_type);
// The same without EFA, processes and load, with so many devices of Trainium2 (0 to 64).
[[nodiscard]] screen::Moment idle_moment(int devices);
// busy_moment with driver 2.27: no live counters.
[[nodiscard]] screen::Moment old_driver_moment(const std::string& instance_type);
// busy_moment with a broken device 3, a degraded device 5 and an interface that lost its driver.
[[nodiscard]] screen::Moment unhealthy_moment(const std::string& instance_type);
// Pods that hold devices 0 and 1, cores 8 and 9, and one interface.
void add_pods(screen::Moment& moment);
void add_claims(screen::Moment& moment);  // those pods, others that hold by claim, and one of another driver

// What a screen is drawn from; keeps alive what a Scene refers to.
struct Stage {
  explicit Stage(const screen::Moment& moment);

  [[nodiscard]] screen::Scene scene() const { return {model, history, state, charset}; }
  [[nodiscard]] std::string screen(int rows, int columns, const std::string& message = "") const;
  [[nodiscard]] std::string print(int columns) const;
  void press(const std::string& keys);  // characters only
  void press(screen::KeyCode code);

  screen::ViewModel model;
  screen::History history;
  screen::ViewState state;
  render::Charset charset = render::Charset::utf8;
};

// Compares with golden/<name> next to this file; UPDATE_GOLDEN=1 in the environment writes the file instead.
void expect_screen(const std::string& name, const std::string& actual);

}  // namespace neuron::test
