#include "tools/neuron-gather/driver_answers_json.h"

#include <nlohmann/json.hpp>

namespace neuron::gather {

std::string driver_answers_json(const host::DriverAnswers& answers) {
  auto json = nlohmann::ordered_json::object();
  if (answers.bdf) json["bdf"] = model::to_string(*answers.bdf);
  if (answers.processes) {
    json["apps"] = nlohmann::ordered_json::array();
    for (const model::Process& process : *answers.processes) {
      auto& app = json["apps"].emplace_back(nlohmann::ordered_json{{"pid", process.pid}});
      if (process.core_mask) app["nc_lock_map"] = *process.core_mask;
      if (process.host_memory_bytes) app["host_mem_bytes"] = *process.host_memory_bytes;
      if (process.device_memory_bytes) app["device_mem_bytes"] = *process.device_memory_bytes;
    }
  }
  if (answers.logical_to_physical) json["logical_to_physical"] = *answers.logical_to_physical;
  return json.dump() + '\n';
}

}  // namespace neuron::gather
