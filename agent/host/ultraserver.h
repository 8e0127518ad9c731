#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"

// Which UltraServer a node is part of: files beside the devices in sys/class/neuron_device
// (docs/reference/driver.md#class-files).
namespace neuron::host {

// Texts of these files as they were last read, by path; what is not there has none.
using UltraServerTexts = std::map<std::string, std::string>;

// nullopt where there is no ultraserver_mode: a driver or a platform without. A file that is there and cannot be read
// counts as it was in `last`, which is brought up to date. One that was never read, or is not what it should be, costs
// its own fact. Each has a line in `problems` (bounded to kMaxHostProblems). Blocks on at most 8 file reads.
[[nodiscard]] std::optional<model::UltraServer> read_ultraserver(const FsRoot& root, UltraServerTexts& last,
                                                                 std::vector<model::ReadProblem>& problems);

// ultraserver_mode: numbers from 0 to 15 joined by commas, ascending then, each once; 0 (unset) is left out; "" → none.
// Errors: data_corrupt. Pure.
[[nodiscard]] Result<std::vector<int>> parse_ultraserver_modes(std::string_view text);
// server_id_<N>, reservation_id: 16 hexadecimal digits, lower case then; zeros, "invalid", "busy" and "" → nullopt.
// Errors: data_corrupt. Pure.
[[nodiscard]] Result<std::optional<std::string>> parse_server_id(std::string_view text);
// node_id, node_id_<N>, node_cnt: 0 to 1023; "-1", "invalid", "busy" and "" → nullopt. Errors: data_corrupt. Pure.
[[nodiscard]] Result<std::optional<int>> parse_node_id(std::string_view text);

}  // namespace neuron::host
