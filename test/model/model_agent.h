#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/device/served_resources.h"
#include "test/model/paths.h"
#include "test/model/timeline.h"

namespace neuron::check {

// The world around one agent process, as far as it is slow or may fail.
struct AgentWorld {
  Timeline& time;
  CheckpointFile& checkpoint;
  grant::GrantOptions response;
  core::OfferPolicy offer;
  // PodResources List: answers later, or with an error.
  using Listed = std::function<void(Result<std::vector<model::Allocation>>)>;
  std::function<void(Listed)> list;
  // One ListAndWatch message on its way to the kubelet.
  std::function<void(model::Resource, plugin::UnitListPtr)> send;
  // Register: the kubelet connects to `path`. False: there is no kubelet.
  std::function<bool(model::Resource, const std::string& path)> connect;
  std::function<std::uint64_t()> kubelet;  // its socket's identity; 0: there is none
  // How many writes of the checkpoint inotify has yet to tell; none afterwards.
  std::function<int()> take_events;
  // Each answer of Allocate that was given.
  std::function<void(model::Resource, const std::vector<std::string>& ids)> given;
};

// One agent process on simulated time: the real ServedResources, AdmissionGate and Allocations, called as Supervisor
// and DevicePluginService call them. Held by shared_ptr: what it has scheduled dies with it.
class ModelAgent : public plugin::KubeletPort, public std::enable_shared_from_this<ModelAgent> {
 public:
  ModelAgent(AgentWorld world, std::string name);
  ~ModelAgent() override;
  ModelAgent(const ModelAgent&) = delete;
  ModelAgent& operator=(const ModelAgent&) = delete;

  void start(grant::NodeUnitsPtr node);
  void set_node(grant::NodeUnitsPtr node);  // the monitor published
  void wake();                              // inotify has something to tell, or an event has come
  void kubelet_died();                      // streams carry nothing from now on, which streams_end() tells the agent
  void streams_end();
  void kubelet_appeared();  // its directory is wiped; the next turn hears of it

  // True once it knows who holds what and may answer.
  [[nodiscard]] bool serving() const { return resources_.knows_holders() && allocations_.node() != nullptr; }
  [[nodiscard]] const plugin::Allocations& allocations() const { return allocations_; }

  // plugin::KubeletPort
  [[nodiscard]] Result<std::unique_ptr<plugin::ResourceServer>> serve(model::Resource resource) override;
  [[nodiscard]] bool exists(const std::string& endpoint) const override;
  [[nodiscard]] bool is_listening(const std::string& /*socket*/) const override { return false; }
  [[nodiscard]] std::uint64_t kubelet() const override { return world_.kubelet(); }
  void start_registration(model::Resource resource, const std::string& endpoint) override;
  void ask_holders(SteadyTime now) override;
  void ask_allocatable(SteadyTime /*now*/) override {}

 private:
  class Socket;

  void later(SteadyTime::duration delay, std::function<void(ModelAgent&)> call);
  template <typename Event>
  void tell(Event event);
  void step();
  // Runs what begins the answer, and lets the world go on until it has been called.
  void wait_for(const std::function<void(plugin::AdmissionGate::Continuation)>& begin);

  AgentWorld world_;
  std::string name_;
  bool kubelet_appeared_ = false;  // and no turn has heard of it
  int endpoints_made_ = 0;
  std::map<std::string, Socket*> sockets_;  // that exist
  plugin::Allocations allocations_{world_.response, [this] { return world_.checkpoint.version(); }, world_.time,
                                   world_.offer};
  plugin::AdmissionGate admissions_{world_.time, [this] { return world_.checkpoint.version(); }, [this] { wake(); }};
  std::optional<SteadyTime> timer_at_;
  plugin::ServedResources resources_;
};

}  // namespace neuron::check
