#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/grant/node_units.h"
#include "agent/model/allocation.h"
#include "plugin/dra/claim/claim_reader.h"
#include "plugin/dra/claim/claim_store.h"

namespace neuron::plugin::dra {

// Whether an entry of PodResources is of that claim: by the uid in its CDI id; by name and devices only where it has
// none, since a claim may have been made anew under its name. Devices alone prove nothing: another claim may have the
// same ones for admin access. Of entries of this driver. Pure.
[[nodiscard]] bool is_of(const model::Allocation& listed, const PreparedClaim& claim);

// Releases orphaned claims, which would be held for ever: those that the kubelet does not list and that are gone from
// the API server, or not allocated here any more (docs/reference/dra.md#prepare). A container may outlast both, as when
// its pod was deleted by force. So a claim goes at once only when every core of it is known to have no memory of a
// process. Where nothing shows that (interfaces, admin access, memory that cannot be read), it stays for the longest
// grace period of its pods. One thread.
class ClaimSweep {
 public:
  struct Ports {
    // Claims of all drivers that the kubelet lists (PodResources), others too; may block.
    std::function<Result<std::vector<model::Allocation>>()> listed;
    std::function<grant::NodeUnitsPtr()> node;  // of the newest scan; nullptr before the first
    // Bytes of device memory that processes own; nullopt = unknown. May block without limit.
    std::function<std::optional<std::uint64_t>(int device, int physical_core)> memory_in_use;
  };
  static constexpr std::chrono::seconds kGraceMargin{60};                        // for the runtime to end containers
  static constexpr std::chrono::seconds kUnknownGrace = std::chrono::hours(24);  // of pods that could not be read

  // `store`, `api` and `clock` must outlive the sweep.
  ClaimSweep(std::string driver, std::string pool, Ports ports, ClaimStore& store, kube::Api& api, const Clock& clock);

  // Every minute or so, on a thread that may hang. The API server is asked only of claims that the kubelet does not
  // list, so in quiet not at all. Those that were released, for the log. Errors: of the list, of the store; nothing is
  // released on an API error.
  [[nodiscard]] Result<std::vector<std::string>> sweep();

 private:
  enum class Evidence { in_use, free, none };
  [[nodiscard]] bool is_listed(const PreparedClaim& claim, const std::vector<model::Allocation>& listed) const;
  void learn_name(const PreparedClaim& claim, const std::vector<model::Allocation>& listed);
  [[nodiscard]] bool is_gone(const PreparedClaim& claim);
  [[nodiscard]] Evidence evidence(const grant::NodeUnits& node, const PreparedClaim& claim) const;
  [[nodiscard]] bool is_unused(const grant::NodeUnits& node, const PreparedClaim& claim);
  void forget(const std::string& uid);

  const std::string driver_;
  const std::string pool_;
  const Ports ports_;
  ClaimStore& store_;
  ClaimReader reader_;
  const Clock& clock_;
  std::map<std::string, int> unlisted_;           // by uid: in so many sweeps in a row, of claims without a name
  std::map<std::string, SteadyTime> gone_since_;  // by uid: when a claim without evidence was first seen to be gone
};

}  // namespace neuron::plugin::dra
