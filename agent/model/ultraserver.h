#pragma once

#include <string>
#include <vector>

namespace neuron::model {

// Several servers whose devices are linked, as far as the driver knows of it: files in sys/class/neuron_device
// (docs/reference/driver.md#class-files).
struct UltraServer {
  // This node among those it may be linked with.
  struct Membership {
    int nodes = 0;  // 2 or 4, of server_id_<N> and node_id_<N>; 0: reservation_id and node_id, which do not tell
    std::string server_id;  // 16 lower case hexadecimal digits, not all zero; equal on all its nodes
    int node_id = 0;        // from 0
    friend bool operator==(const Membership&, const Membership&) = default;
  };
  bool busy = false;                    // ultraserver_mode: the nodes are finding out
  std::vector<int> modes;               // ultraserver_mode: what is possible, 1 X4, 2 X2H, 3 X2V, 4 X1; ascending
  std::vector<Membership> memberships;  // ascending nodes; empty: linked with nobody
  friend bool operator==(const UltraServer&, const UltraServer&) = default;
};

}  // namespace neuron::model
