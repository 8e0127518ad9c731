#include <cinttypes>
#include <cstdio>
#include <string>

#include "tools/neuron-sim/trees.h"

// Which nodes a node is linked with, as the driver's class files have it (docs/reference/driver.md#elections).
namespace neuron::sim {
namespace {

using State = UltraServerPlan::State;
using Texts = std::map<std::string, std::string>;

constexpr const char* kNone = "0000000000000000\n";
constexpr std::uint64_t kServerId = 0x8f10b6e35a7c92d4;
constexpr std::uint64_t kPartitionId = 1;  // driver 2.26: the default of its parameter userver_pds_server_id

std::string server_id(std::uint64_t id) {
  char text[18];
  std::snprintf(text, sizeof text, "%016" PRIx64 "\n", id);
  return text;
}

// Four nodes can work by two as well, over their vertical links (3). Two servers of an UltraServer find each other over
// the horizontal links (2), two of a partition over the vertical ones.
std::string modes_of(const UltraServerPlan& plan, bool is_partition) {
  if (plan.state == State::busy) return "busy\n";
  if (plan.state == State::alone) return "4\n";
  if (plan.nodes == 4) return "1,3,4\n";
  return is_partition ? "3,4\n" : "2,4\n";
}

// The driver counts a pair of the four from 0, and gives the second pair another id.
Texts files_by_size(const UltraServerPlan& plan, bool is_partition) {
  const bool busy = plan.state == State::busy;
  const std::string no_node = busy ? "busy\n" : "-1\n";
  Texts texts{{"node_id_2", no_node},
              {"node_id_4", no_node},
              {"server_id_2", kNone},
              {"server_id_4", kNone},
              {"ultraserver_mode", modes_of(plan, is_partition)}};
  if (plan.state != State::linked) return texts;
  const std::uint64_t id = is_partition ? kPartitionId : kServerId;
  const bool is_second_pair = plan.node >= 2;
  texts["node_id_2"] = std::to_string(plan.node % 2) + "\n";
  texts["server_id_2"] = server_id(is_second_pair ? id - 1 : id);
  if (plan.nodes != 4) return texts;
  texts["node_id_4"] = std::to_string(plan.node) + "\n";
  texts["server_id_4"] = server_id(id);
  return texts;
}

Texts files_of_partition(const UltraServerPlan& plan) {
  const bool busy = plan.state == State::busy;
  const bool linked = plan.state == State::linked;
  return {{"node_id", busy ? "busy\n" : std::to_string(linked ? plan.node : -1) + "\n"},
          {"node_cnt", busy ? "busy\n" : std::to_string(linked ? plan.nodes : 0) + "\n"},
          {"reservation_id", linked ? server_id(kServerId) : kNone},
          {"ultraserver_mode", modes_of(plan, true)}};
}

}  // namespace

Texts ultraserver_files(Platform platform, const DriverGeneration& driver, const std::optional<UltraServerPlan>& plan) {
  const bool is_partition = platform == Platform::pds || platform == Platform::max;
  if (!driver.class_files_by_size) {  // 2.22.2 shows its own number alone, 2.21.37 nothing
    if (driver.minor < 22) return {};
    const bool linked = platform == Platform::ultraserver && (!plan || plan->state == State::linked);
    const bool busy = plan && plan->state == State::busy;
    return {{"node_id", busy     ? "busy\n"
                        : linked ? std::to_string(plan ? plan->node : 0) + "\n"
                                 : "-1\n"},
            {"server_id", linked ? server_id(kServerId) : kNone}};
  }
  if (platform == Platform::standard) {
    if (driver.platform_class_files) return {};
    Texts texts = files_by_size({State::alone, 0, -1}, false);
    texts["ultraserver_mode"] = "\n";  // not even alone
    return texts;
  }
  if (driver.platform_class_files && is_partition) {
    return files_of_partition(plan.value_or(UltraServerPlan{State::alone, 0, -1}));
  }
  // Before 2.30.2 a parameter of the driver says how large a partition is: 2 by default.
  return files_by_size(plan.value_or(UltraServerPlan{State::linked, is_partition ? 2 : 4, 0}), is_partition);
}

}  // namespace neuron::sim
