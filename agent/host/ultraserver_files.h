#pragma once

#include <map>
#include <string>

#include "agent/host/fs_root.h"

namespace neuron::host {

// What the driver says of the UltraServer that the node is in, as text, trimmed; "" where a file is not there or cannot
// be read (docs/reference/driver.md#class-files). All below sys/class/neuron_device/.
struct UltraServerFiles {
  std::string modes;                     // ultraserver_mode
  std::map<int, std::string> server_id;  // by number of nodes, 2 or 4: server_id_<N>, else reservation_id
  std::map<int, std::string> node_id;    // by number of nodes: node_id_<N>, else node_id
};

// Any thread; blocks on up to seven file reads.
[[nodiscard]] UltraServerFiles read_ultraserver_files(const FsRoot& root);

}  // namespace neuron::host
