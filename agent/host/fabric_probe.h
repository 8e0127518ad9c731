#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "agent/preflight/preflight.h"

// libfabric's list of interfaces. The library opens every verbs device, may hang, crash or be missing, and would grow
// this program, so only a child process loads it.
namespace neuron::host {

struct FabricRequest {
  std::vector<std::string> libraries = {"libfabric.so.1", "/opt/amazon/efa/lib64/libfabric.so.1",
                                        "/opt/amazon/efa/lib/libfabric.so.1"};  // the first that loads is used
  std::string provider = "efa";
  std::chrono::milliseconds budget{5000};
};

// Never `not_tried`. Call it only while this process has one thread; blocks for at most the budget and a second.
[[nodiscard]] preflight::FabricFacts probe_fabric(const FabricRequest& request);

// The child's lines: "version 1.17", "interface NAME", "error CODE TEXT", "missing TEXT", "done". Foreign text; pure
// and bounded. Without "done" the state is `failed`.
[[nodiscard]] preflight::FabricFacts parse_fabric_answer(std::string_view text);

// Name of the NIC behind a libfabric domain name: "rdmap79s0-rdm" and "rdmap79s0-dgrm" are "rdmap79s0".
[[nodiscard]] std::string nic_of_domain(std::string_view domain);

}  // namespace neuron::host
