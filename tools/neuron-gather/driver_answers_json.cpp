#include "tools/neuron-gather/driver_answers_json.h"

#include <nlohmann/json.hpp>

namespace neuron::gather {

std::string driver_answers_json(const host::DriverAnswers& answers) {
  auto json = nlohmann::ordered_json::object();
  if (answers.bdf) json["bdf"] = model::to_string(*answers.bdf);
  if (answers.processes) {
    json["apps"] = nlohmann::ordered_json::array();
    for (const model::Process& process : *answers.processes) {
      json["apps"].push_back({{"pid", process.pid},
                              {"nc_lock_map", process.core_mask},
                              {"host_mem_bytes", process.host_memory_bytes},
                              {"device_mem_bytes", process.device_memory_bytes}});
    }
  }
  if (answers.logical_to_physical) json["logical_to_physical"] = *answers.logical_to_physical;
  return json.dump() + '\n';
}

}  // namespace neuron::gather
