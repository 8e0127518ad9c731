#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/grant/grant.h"
#include "agent/grant/node_units.h"
#include "agent/kube/api.h"
#include "plugin/dra/claim/bounded_scan.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/claim/claim_port.h"
#include "plugin/dra/claim/claim_reader.h"
#include "plugin/dra/claim/claim_store.h"
#include "plugin/dra/claim/plugin_holders.h"
#include "plugin/kubelet/memory_gate.h"

namespace neuron::plugin::dra {

struct ClaimsSettings {
  std::string driver;  // "neuron.aws.com"
  std::string pool;    // this node's: its name
  grant::GrantOptions grant;
  UnhealthyTaint taint;  // as the pool has it
};

// Functions that claims call, from any thread. Objects that they refer to must outlive the claims and every job of
// `run` and `post`.
struct ClaimsPorts {
  std::function<grant::NodeUnitsPtr()> node;  // of the newest scan; nullptr before the first
  // Of a scan that begins now, for a device that was found since; on a thread of `run`, where it may hang. Units that
  // are unhealthy by `node` stay so. Empty: none.
  std::function<grant::NodeUnitsPtr()> scan;
  std::function<std::optional<std::uint64_t>(int device, int physical_core)> memory_in_use;  // as MemoryGate::Ports
  std::function<void(MemoryGate::Job)> run;
  std::function<void(SteadyTime, MemoryGate::Job)> post;
  std::function<PluginHolders()> plugin_holders{};  // must not block. Empty: there are none
  // Namespace and name of every pod that the kubelet has here, also of one that holds nothing yet: it says which pods
  // of a group may use a claim. May block. Empty: not known.
  using PodNames = std::vector<std::pair<std::string, std::string>>;
  std::function<Result<PodNames>()> pods{};
};

// Prepares and releases claims of this node. Prepared claims are in files alone (ClaimStore), so that another instance
// of the driver, or this one after a crash, continues with them. Thread-safe; no lock is held while the API server is
// asked or memory is waited for, so no claim waits for another one.
class Claims final : public ClaimPort {
 public:
  // `store`, `api` and `clock` must outlive the claims and every job that they were given to run.
  Claims(ClaimsSettings settings, ClaimsPorts ports, ClaimStore& store, kube::Api& api, const Clock& clock);

  // A claim that is prepared is answered as before, and its CDI file is there again; without the API server too. Else
  // its allocation is read, checked against this node and what other claims hold, leftovers of other containers are
  // waited for (MemoryGate::kTimeout), and then it is written down with its CDI file.
  [[nodiscard]] std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>& claims,
                                                             const std::stop_token& stop) override;
  // Needs no API server, no driver and no device.
  [[nodiscard]] std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>& claims) override;

 private:
  struct Pending;  // one claim of a call
  struct Call;

  [[nodiscard]] Result<void> read(Call& call, Pending& pending);
  [[nodiscard]] Result<void> answer_again(Pending& pending);
  [[nodiscard]] Result<void> plan(Call& call, Pending& pending);
  [[nodiscard]] Result<void> read_pods(Call& call, Pending& pending, const std::stop_token& stop);
  [[nodiscard]] Result<void> name_rebuilt(Call& call, const Pending& pending);
  [[nodiscard]] Result<void> grant(const Call& call, Pending& pending);
  void wait_and_commit(Call& call, const std::stop_token& stop);
  [[nodiscard]] Result<void> commit(const Call& call, Pending& pending);
  void log_change(const Pending& pending) EXCLUDES(mutex_);

  const ClaimsSettings settings_;
  const ClaimsPorts ports_;
  ClaimStore& store_;
  ClaimReader reader_;
  BoundedScan scan_;
  std::atomic<std::uint64_t> calls_{0};

  Mutex mutex_;
  std::map<std::string, std::string> last_error_ GUARDED_BY(mutex_);  // by uid, as last logged

  MemoryGate gate_;
};

// proc/sys/kernel/random/boot_id below `root`; "" when it cannot be read. Blocks on that file.
[[nodiscard]] std::string read_boot_id(const std::string& root);

}  // namespace neuron::plugin::dra
