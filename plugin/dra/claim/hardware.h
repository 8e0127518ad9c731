#pragma once

#include <optional>
#include <string>
#include <vector>

// Hardware that a claim holds, whatever the devices of the pool are called: a device, its cores and its groups exclude
// each other. Pure.
namespace neuron::plugin::dra {

// Cores are places: place p of a device is its p-th physical core in the order in which the driver numbers logical ones
// before LNC joins them (docs/reference/driver.md#logical-cores), so logical core n has the places n*LNC … n*LNC+LNC-1.
// They stay what they are when LNC changes, and when the driver first says which physical core is behind which place.
struct HeldDevice {
  int device = 0;           // index
  std::vector<int> places;  // ascending, each once; empty = all of the device, however many it has
  friend bool operator==(const HeldDevice&, const HeldDevice&) = default;
};

struct Hardware {
  std::vector<HeldDevice> devices;  // ascending, each once
  std::vector<std::string> efas;    // RDMA names, ascending, each once

  [[nodiscard]] bool empty() const { return devices.empty() && efas.empty(); }
  void add(const Hardware& more);
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

// How cores are numbered that claims hold: with another LNC the same number is other hardware.
struct HeldNumbering {
  bool any = false;        // some claim that is prepared holds a device, or cores of one
  std::optional<int> lnc;  // of the node when it was prepared; nullopt: unknown
};

// A part that both hold, as text: "neuron3", "core position 1 of neuron3", "interface rdmap16s25". nullopt: nothing.
[[nodiscard]] std::optional<std::string> overlap(const Hardware& one, const Hardware& other);

}  // namespace neuron::plugin::dra
