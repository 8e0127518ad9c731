#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/core/offer_policy.h"
#include "plugin/device/admission_gate.h"
#include "plugin/device/allocations.h"
#include "plugin/device/events.h"
#include "plugin/device/holders.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/device/readiness.h"
#include "plugin/device/registration_check.h"
#include "plugin/device/served_resource.h"
#include "plugin/kubelet/kubelet_directory.h"

namespace neuron::plugin {

// Keeps every resource that the node has registered with whatever kubelet is there, publishes its lists when they
// change and AdmissionGate allows it, and learns who holds what. Events in, calls of KubeletPort out; waits for
// nothing and owns no thread: Supervisor calls it, and so does the model check. One thread.
class DeviceManager {
 public:
  struct Settings {
    std::string instance;                          // part of the names of this process's sockets
    std::chrono::milliseconds holders_interval{};  // how often List is asked when nothing else calls for it
    core::OfferPolicy offer;
    std::string own_pod{};  // see holdings::ListedHolders
  };
  // Everything must outlive it.
  struct Parts {
    const Clock& clock;
    Allocations& allocations;
    AdmissionGate& admissions;
    const CheckpointSource& checkpoint;
    KubeletPort& kubelet;
  };

  DeviceManager(Settings settings, const Parts& parts);
  ~DeviceManager();  // ends all streams, then the servers
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  void handle(const KubeletDirectory::Changes& changes);
  void handle(const SnapshotChanged& event);
  void handle(const StreamEnded& event);
  void handle(const StreamOpened& /*event*/) {}  // the wake-up was all
  void handle(const RegisterDone& event);
  void handle(const AdmissionsChanged& /*event*/) {}  // the wake-up was all
  void handle(const CdiMountDead& /*event*/) {}       // the supervisor ends
  void handle(const CheckpointCameBack& /*event*/) { apply_holders(); }
  void handle(const HoldersListed& event);
  void handle(const AllocatableListed& event);

  // Does what is due. `before`: taken before the directory's changes were read (AdmissionGate::progress).
  void run_due(const Admissions::Progress& before);
  [[nodiscard]] std::optional<SteadyTime> next() const;  // when to call run_due() at the latest

  [[nodiscard]] ServingState serving() const;
  [[nodiscard]] bool knows_holders() const { return holders_known_; }  // or has given up on them: answers may be given

 private:
  // resources
  void meet_kubelet();
  void connect_all();
  void drop_dead_servers();
  void ensure_served(ServedResource& served);
  void start_registration(ServedResource& served);
  void retry_due();
  [[nodiscard]] std::vector<RegistrationCheck::Claim> registered() const;
  void register_again(const RegistrationCheck::Lost& lost);
  [[nodiscard]] ServedResource* find(model::Resource resource);
  [[nodiscard]] ServingStep serving_step(const ServedResource& served) const;

  // lists
  bool publish_changed();  // true: something has
  void publish_again();    // one list as it was: makes the kubelet write its checkpoint
  void publish(ServedResource& served, UnitList list);
  void log_changes(const ServedResource& served, const UnitList& list) const;

  // holders
  void ask_holders(SteadyTime asked_at);
  void apply_holders();
  void learn_holders(const HoldersListed& event);
  [[nodiscard]] std::chrono::milliseconds ask_again_after_failure() const;
  void log_source();
  [[nodiscard]] std::chrono::milliseconds ask_interval() const;

  const Settings settings_;
  const Parts parts_;
  Holders holders_;
  RegistrationCheck check_;
  std::vector<ServedResource> served_;
  std::uint64_t kubelet_ = 0;                // KubeletPort::kubelet() of the newest one that was met
  bool holders_known_ = false;               // an answer about holders is in that can be relied on, or given up on
  std::optional<SteadyTime> unknown_since_;  // a kubelet is there, and the first such answer was not
  int list_failures_ = 0;                    // in a row
  bool asking_holders_ = false;
  std::string holders_error_;  // of List, while it fails
  std::optional<Holders::Source> told_source_;
};

}  // namespace neuron::plugin
