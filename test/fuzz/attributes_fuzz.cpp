// Every parser of a sysfs text sees every input; results must keep the bounds their headers promise.

#include <cstdlib>
#include <string_view>

#include "agent/host/attributes.h"
#include "agent/host/last_seen.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_names(std::string_view text) {
  using namespace neuron::host;
  if (const auto index = device_index_of(text)) require(text == "neuron" + std::to_string(*index));
  if (const auto index = core_index_of(text)) require(*index < kMaxCores);
  if (const auto index = uverbs_index_of(text)) require(text == "uverbs" + std::to_string(*index));
  require(!is_rdma_name(text) || text.find('/') == std::string_view::npos);
  require(switch_key_of(text).size() <= 7);
  require(pcie_root_of(text).size() <= 10);
  require(instance_id_of(text).size() <= 32);
}

void check_values(std::string_view text) {
  using namespace neuron::host;
  if (const auto value = parse_ecc_count(text)) require(*value <= 65535);
  if (const auto value = parse_hbm_count(text)) require(*value <= 262140);
  if (const auto value = parse_heartbeat(text)) require(*value < 256);
  if (const auto value = parse_core_count(text)) require(*value >= 1 && *value <= kMaxCores);
  if (const auto value = parse_numa_node(text)) require(*value >= -1);
  if (const auto value = parse_lnc_config(text)) require(*value == 1 || *value == 2);
  if (const auto value = parse_connected_devices(text)) require(value->size() <= kMaxDevices);
  if (const auto value = parse_cpu_list(text)) require(value->size() <= 8192);
  if (const auto value = parse_serial(text); value && *value) require((*value)->size() == 16);
  if (const auto value = parse_arch(text)) require(value->size() <= 16);
  if (const auto value = parse_ultraserver_modes(text)) require(value->size() <= 15);
  if (const auto value = parse_server_id(text); value && *value) require((*value)->size() == 16);
  if (const auto value = parse_node_id(text); value && *value) require(**value >= 0 && **value <= 1023);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_names(text);
  check_values(text);
  for (const auto& file : neuron::health::device_signals()) {
    neuron::model::DeviceSignals signals;
    if (!neuron::host::store_signal(file, text, signals)) {
      signals.unreachable.reset();  // a bad text still came from a device that answers
      require(signals == neuron::model::DeviceSignals{});
    }
  }
  return 0;
}
