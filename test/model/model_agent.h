#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/device/admission_gate.h"
#include "plugin/device/allocation_desk.h"
#include "plugin/device/holders.h"
#include "test/model/paths.h"
#include "test/model/timeline.h"

namespace neuron::check {

// The world around one agent process, as far as it is slow or may fail.
struct AgentWorld {
  Timeline& time;
  CheckpointFile& checkpoint;
  std::string checkpoint_path;
  plugin::ResponseOptions response;
  core::OfferPolicy offer;
  // PodResources List: answers later, or with an error.
  using Listed = std::function<void(Result<std::vector<rpc::PodDevices>>)>;
  std::function<void(Listed)> list;
  // One ListAndWatch message on its way to the kubelet.
  std::function<void(model::Resource, plugin::UnitListPtr)> send;
  // Register: the kubelet connects to `path`. False: there is no kubelet.
  std::function<bool(model::Resource, const std::string& path)> connect;
  // Every inotify event that waits is delivered.
  std::function<void()> deliver_events;
  // Each answer of Allocate that was given.
  std::function<void(model::Resource, const std::vector<std::string>& ids)> given;
};

// One agent process: the real desk, AdmissionGate and Holders, wired as plugin/device/supervisor*.cpp does, on
// simulated time. Held by shared_ptr: what it has scheduled dies with it.
class ModelAgent : public std::enable_shared_from_this<ModelAgent> {
 public:
  ModelAgent(AgentWorld world, std::string name);
  ~ModelAgent();
  ModelAgent(const ModelAgent&) = delete;
  ModelAgent& operator=(const ModelAgent&) = delete;

  void start(plugin::NodeViewPtr view);
  void set_view(plugin::NodeViewPtr view);  // the monitor published
  void checkpoint_changed();                // inotify
  void kubelet_appeared();

  // True once it knows who holds what and may answer.
  [[nodiscard]] bool serving() const { return holders_known_ && desk_.view() != nullptr; }
  [[nodiscard]] bool asks_by_list() const { return asks_by_list_; }  // the list being sent is for an Allocate in doubt
  [[nodiscard]] const plugin::AllocationDesk& desk() const { return desk_; }

 private:
  struct Served;

  void later(SteadyTime::duration delay, void (ModelAgent::*call)());
  void run_timers();
  void connect_all();
  void wake();
  bool publish_changed();
  void publish_again();
  void send(const Served& served);
  // Runs what begins the answer, and lets the world go on until it has been called.
  void wait_for(const std::function<void(plugin::AdmissionGate::Go)>& begin);
  void ask_holders();
  void listed(SteadyTime asked_at, const Result<std::vector<rpc::PodDevices>>& answer);
  void apply_holders();
  [[nodiscard]] std::chrono::milliseconds ask_interval() const;

  static constexpr std::chrono::milliseconds kInterval{10000};  // --pod-resources-interval's default

  AgentWorld world_;
  std::string name_;
  plugin::AllocationDesk desk_{world_.response, [this] { return world_.checkpoint.mark(); }, world_.time, world_.offer};
  plugin::Holders holders_{world_.checkpoint_path, kInterval};
  std::vector<std::unique_ptr<Served>> served_;
  int endpoints_made_ = 0;
  bool holders_known_ = false;
  bool asking_holders_ = false;
  bool asks_by_list_ = false;
  plugin::AdmissionGate admissions_{world_.time, [this] { return world_.checkpoint.mark(); }, [this] { wake(); }};
  std::optional<SteadyTime> timer_at_;
};

}  // namespace neuron::check
