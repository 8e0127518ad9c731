#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/grant/node_units.h"
#include "agent/model/allocation.h"
#include "plugin/dra/claim_reader.h"
#include "plugin/dra/claim_store.h"

namespace neuron::plugin::dra {

// Forgets claims that nobody is going to release: that the kubelet does not list, that are gone from the API server (or
// not allocated here any more), and on whose cores no process has memory. Without it they would be held for ever
// (docs/reference/dra.md#prepare). One thread.
class ClaimSweep {
 public:
  struct Ports {
    // Claims of all drivers that the kubelet lists (PodResources), others too; may block.
    std::function<Result<std::vector<model::Allocation>>()> listed;
    std::function<grant::NodeUnitsPtr()> node;  // of the newest scan; nullptr before the first
    // Bytes of device memory that processes own; nullopt = cannot tell. May block for ever.
    std::function<std::optional<std::uint64_t>(int device, int physical_core)> memory_in_use;
  };
  // `store` and `api` must outlive the sweep.
  ClaimSweep(std::string driver, std::string pool, Ports ports, ClaimStore& store, kube::Api& api);

  // Every minute or so, on a thread that may hang. The API server is asked only of claims that the kubelet does not
  // list, so in quiet not at all. Who has been forgotten, for the log. Errors: of the list, of the store; nothing is
  // forgotten on an API error.
  [[nodiscard]] Result<std::vector<std::string>> sweep();

 private:
  [[nodiscard]] bool is_listed(const PreparedClaim& claim, const std::vector<model::Allocation>& listed) const;
  void learn_name(const PreparedClaim& claim, const std::vector<model::Allocation>& listed);
  [[nodiscard]] bool is_gone(const PreparedClaim& claim);
  [[nodiscard]] bool has_memory(const grant::NodeUnits& node, const PreparedClaim& claim) const;

  const std::string driver_;
  const std::string pool_;
  const Ports ports_;
  ClaimStore& store_;
  ClaimReader reader_;
  std::map<std::string, int> unlisted_;  // by uid: in so many sweeps in a row, of claims without a name
};

}  // namespace neuron::plugin::dra
