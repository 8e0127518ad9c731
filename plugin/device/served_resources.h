#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/core/offer_policy.h"
#include "plugin/device/holders.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/device/registration_check.h"
#include "plugin/device/serving_state.h"
#include "plugin/kubelet/kubelet_directory.h"

namespace neuron::plugin {

// State of one resource in ServedResources: its server, the progress of its registration, the list last published.
// Passive data, one thread.
struct ServedResource {
  enum class Phase { idle, registering, registered };

  model::Resource resource{};
  std::unique_ptr<ResourceServer> server;  // nullptr: not served (nothing to offer, or no kubelet yet)
  Phase phase = Phase::idle;
  std::optional<SteadyTime> retry_at;  // when to register next
  std::chrono::milliseconds backoff{0};
  SteadyTime registered_at{};
  std::optional<SteadyTime> check_at;  // by when a kubelet that registered it has to have opened ListAndWatch
  std::uint64_t kubelet = 0;           // identity of the kubelet.sock it last registered with
  UnitListPtr last_list;               // as last published, at published_at
  SteadyTime published_at{};
  std::string last_error;  // as last logged, so that a repeated one is not

  // Publishes last_list, new or unchanged, to all watchers. Only while there is a server.
  void publish(SteadyTime now) {
    published_at = now;
    server->publish(last_list);
  }

  // The next wait: 20 ms, doubling, at most 5 s. An endpoint that lived for a while starts over.
  void schedule_retry(SteadyTime now) {
    constexpr std::chrono::milliseconds kFirst{20};
    constexpr std::chrono::milliseconds kMost{5000};
    constexpr std::chrono::seconds kStable{10};
    if (phase == Phase::registered && now - registered_at > kStable) backoff = std::chrono::milliseconds{0};
    backoff = backoff.count() == 0 ? kFirst : std::min(backoff * 2, kMost);
    phase = Phase::idle;
    retry_at = now + backoff;
  }
};

// Keeps every resource that the node has registered with whatever kubelet is there, publishes its lists when they
// change and AdmissionGate allows it, and learns the holders. Events in, calls of KubeletPort out; waits for
// nothing and owns no thread: Supervisor calls it, and so does the model check. One thread.
class ServedResources {
 public:
  struct Settings {
    std::string instance;                          // part of the names of this process's sockets
    std::chrono::milliseconds holders_interval{};  // how often List is asked when nothing else calls for it
    core::OfferPolicy offer;
    std::string own_pod{};  // see holdings::ListedHolders
    // Not in a pod, and the kubelet may have prepared claims (may_hold_claims): until List shows some, it may be that
    // of a kubelet which has just started. Else the first answer counts.
    bool claims_expected = false;
  };
  using Parts = HolderWatch::Parts;

  ServedResources(Settings settings, const Parts& parts);
  ~ServedResources();  // ends all streams, then the servers
  ServedResources(const ServedResources&) = delete;
  ServedResources& operator=(const ServedResources&) = delete;

  void handle(const KubeletDirectory::Changes& changes);
  void handle(const SnapshotChanged& event);
  void handle(const StreamEnded& event);
  void handle(const StreamOpened& /*event*/) {}  // no-op: the event only wakes the loop
  void handle(const RegisterDone& event);
  void handle(const AdmissionsChanged& /*event*/) {}  // no-op: the event only wakes the loop
  void handle(const CdiMountDead& /*event*/) {}       // the supervisor ends
  void handle(const CheckpointCameBack& /*event*/) { apply_holders(); }
  void handle(const HoldersListed& event);
  void handle(const AllocatableListed& event);

  // Does what is due. `before`: taken before the directory's changes were read (AdmissionGate::progress).
  void run_due(const Admissions::Progress& before);
  [[nodiscard]] std::optional<SteadyTime> next() const;  // when to call run_due() at the latest

  [[nodiscard]] ServingState serving() const;
  [[nodiscard]] bool knows_holders() const { return holders_.is_known(); }

 private:
  void apply_holders();
  void check_written();  // the checkpoint that the holders were read from, for units given by another plugin

  // resources
  void follow_kubelet();
  void connect_all();
  void drop_if_gone(ServedResource& served);  // the server, when its socket is
  void ensure_served(ServedResource& served);
  void start_registration(ServedResource& served);
  void retry_due();
  [[nodiscard]] std::vector<RegistrationCheck::Registered> registered() const;
  void register_again(const RegistrationCheck::Lost& lost);
  [[nodiscard]] ServedResource* find(model::Resource resource);
  [[nodiscard]] ServingStep serving_step(const ServedResource& served) const;

  // lists
  bool publish_changed();  // true: something has
  void publish_again();    // one list as it was: makes the kubelet write its checkpoint
  void publish(ServedResource& served, UnitList list);
  void log_changes(const ServedResource& served, const UnitList& list) const;

  const Settings settings_;
  const Parts parts_;
  HolderWatch holders_;
  RegistrationCheck check_;
  std::vector<ServedResource> served_;
  std::uint64_t kubelet_ = 0;  // KubeletPort::kubelet() of the newest one that was met
};

}  // namespace neuron::plugin
