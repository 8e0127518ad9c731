#pragma once

#include <optional>
#include <string>
#include <vector>

namespace neuron::model {

// Several servers whose devices are linked, as far as the driver knows of it: files in sys/class/neuron_device
// (docs/reference/driver.md#class-files).
struct UltraServer {
  // This node among those it may be linked with.
  struct Membership {
    int nodes = 0;          // 2 or 4, of server_id_<N> and node_id_<N>, or node_cnt of a partition; 0: not known
    std::string server_id;  // 16 lower case hexadecimal digits, not all zero; equal on all its nodes
    int node_id = 0;        // from 0
    friend bool operator==(const Membership&, const Membership&) = default;
  };
  bool busy = false;                                  // ultraserver_mode: the election has not ended (core::Election)
  std::vector<int> modes;                             // ultraserver_mode: 1 X4, 2 X2H, 3 X2V, 4 X1; ascending
  std::vector<Membership> memberships;                // ascending nodes; empty: linked with no other node
  std::optional<int> partition_nodes = std::nullopt;  // node_cnt: nodes of this node's partition, 0 for none; nullopt:
                                                      // the driver numbers by size (server_id_<N>)
  friend bool operator==(const UltraServer&, const UltraServer&) = default;
};

}  // namespace neuron::model
