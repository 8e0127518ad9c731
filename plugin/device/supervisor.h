#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/core/offer_policy.h"
#include "agent/rpc/pod_resources.h"
#include "plugin/device/admission_gate.h"
#include "plugin/device/allocation_desk.h"
#include "plugin/device/event_queue.h"
#include "plugin/device/holders.h"
#include "plugin/device/pre_start_gate.h"
#include "plugin/device/readiness.h"
#include "plugin/device/registration_check.h"
#include "plugin/device/served_resource.h"
#include "plugin/kubelet/instance_lock.h"
#include "plugin/kubelet/kubelet_registration.h"
#include "plugin/kubelet/socket_watch.h"

namespace neuron::plugin {

// The main thread's loop: keeps every resource that the node has registered with whatever kubelet is there, publishes
// what changes, and learns who holds what. Waits only in poll(); everything slow happens elsewhere and comes back as an
// Event. Construct, run() once, destroy.
class Supervisor {
 public:
  enum class Outcome { stopped, other_agent, dead_mount, failed };

  struct Settings {
    std::string device_plugins_dir;
    std::string pod_resources_socket;
    std::chrono::milliseconds pod_resources_interval{};  // how often List is asked when nothing else calls for it
    core::OfferPolicy offer;
  };
  struct Parts {
    Settings settings;
    const Clock& clock;
    EventQueue& events;
    AllocationDesk& desk;
    AdmissionGate& admissions;
    PreStartGate& pre_start;
    std::function<void()> rescan;                             // SIGHUP
    std::function<void(const ServingState&)> tell_serving{};  // at every turn of the loop, 2 s apart at most
  };

  // `signals`: a signalfd for SIGTERM, SIGINT and SIGHUP, which every thread has blocked. Everything must outlive it.
  Supervisor(const Parts& parts, int signals);
  ~Supervisor();  // ends all streams, then the servers
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  [[nodiscard]] Outcome run();

 private:
  // directory and kubelet
  [[nodiscard]] std::optional<Outcome> watch_directory();
  [[nodiscard]] std::optional<Outcome> lock_directory();
  void lose_directory();
  void check_directory();
  [[nodiscard]] std::optional<Outcome> handle_directory_events();
  [[nodiscard]] Outcome end_on_dead_mount(std::string_view what) const;
  void note_other_socket(const SocketWatch::Event& event);
  void connect_all();

  // resources
  void ensure_served(ServedResource& served);
  void start_registration(ServedResource& served);
  void drop_dead_servers();
  void retry_due();
  void ask_allocatable();
  void register_again(const RegistrationCheck::Lost& lost);

  // publishing
  bool publish_changed();  // true: something has
  void publish_again();    // one unchanged list: makes the kubelet write its checkpoint
  void log_changes(const ServedResource& served, const UnitList& list) const;

  // holders
  void ask_holders(SteadyTime asked_at);
  void apply_holders();
  void log_source();
  [[nodiscard]] std::chrono::milliseconds ask_interval() const;

  void handle(const SnapshotChanged& event);
  void handle(const StreamEnded& event);
  void handle(const RegisterDone& event);
  void handle(const StreamOpened& /*event*/) {}       // the wake-up was all
  void handle(const AdmissionsChanged& /*event*/) {}  // the wake-up was all
  void handle(const HoldersListed& event);
  void handle(const AllocatableListed& event);
  [[nodiscard]] bool handle_signals();  // true: stop
  [[nodiscard]] std::optional<Outcome> run_timers();
  void look_whether_overslept(SteadyTime due);  // `due`: when poll() was to return at the latest
  [[nodiscard]] int poll_timeout_ms();
  void tell_serving() const;
  [[nodiscard]] ServingStep serving_step(const ServedResource& served) const;
  [[nodiscard]] std::string kubelet_socket() const;
  [[nodiscard]] ServedResource* find(model::Resource resource);

  Parts parts_;
  int signals_;
  rpc::PodResourcesClient pod_resources_;
  KubeletRegistration registration_;
  Holders holders_;
  RegistrationCheck check_;
  std::optional<InstanceLock> lock_;
  std::optional<SocketWatch> watch_;
  std::vector<ServedResource> served_;
  std::string instance_;  // part of every endpoint name: unique per process
  int endpoints_made_ = 0;
  bool holders_known_ = false;  // the first answer about holders is in, or given up on
  bool asking_holders_ = false;
  std::string holders_error_;  // of List, while it fails
  std::optional<Holders::Source> told_source_;
  std::string directory_error_;
  std::optional<SteadyTime> watch_at_;   // when to open the directory, while it is not watched
  std::optional<SteadyTime> stands_at_;  // when to look whether it still stands, while it is
};

}  // namespace neuron::plugin
