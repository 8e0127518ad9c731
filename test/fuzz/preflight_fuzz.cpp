// Texts that `neuron-agent check` reads beyond the scan: the answer of the process that foreign code ran in, the
// configuration of the kubelet and of containerd, the record of prepared claims, dpkg's packages. The first byte
// chooses.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/base/parse.h"
#include "agent/host/fabric_probe.h"
#include "agent/host/preflight_facts.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool is_plain(std::string_view text) {
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20) return false;
  }
  return true;
}

void check_answer(std::string_view text) {
  const auto facts = neuron::host::parse_fabric_answer(text);
  require(facts.interfaces.size() <= 256);
  for (const auto& name : facts.interfaces) require(!name.empty() && is_plain(name));
  require(facts.error_code >= 0 && is_plain(facts.message) && is_plain(facts.version));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      check_answer(text);
      break;
    case 2:
      require(!neuron::host::assess_containerd_config(text, "config.toml").evidence.value.empty());
      break;
    case 3:
      require(neuron::decode_base64(text).size() <= text.size());
      break;
    case 4:
      if (const auto uids = neuron::host::prepared_claims_in(text)) {
        require(std::is_sorted(uids->begin(), uids->end()));
        for (const auto& uid : *uids) require(is_plain(uid) && uid.size() < 80);
      }
      break;
    case 5:
      static_cast<void>(neuron::host::gate_in(text, "DynamicResourceAllocation"));
      break;
    default:
      require(is_plain(neuron::host::kubelet_version_in(text)));
  }
  return 0;
}
