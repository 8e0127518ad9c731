#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plugin/device/served_resources.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

// A device manager over a kubelet and a checkpoint that a test moves by hand.
namespace neuron::plugin {

using model::Resource;
using std::chrono::milliseconds;

// A kubelet that registers when the test says so, and what it has been shown.
class FakeKubelet final : public KubeletPort {
 public:
  class Server final : public ResourceServer {
   public:
    Server(FakeKubelet& kubelet, Resource resource, std::string endpoint)
        : kubelet_(kubelet), resource_(resource), endpoint_(std::move(endpoint)) {
      kubelet_.servers[resource_] = this;
      kubelet_.sockets.push_back(endpoint_);
    }
    ~Server() override {
      if (kubelet_.servers[resource_] == this) kubelet_.servers.erase(resource_);
      std::erase(kubelet_.sockets, endpoint_);
    }
    [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
    [[nodiscard]] std::size_t watchers() const override { return kubelet_.watches ? 1 : 0; }
    void publish(UnitListPtr units) override { lists.push_back(std::move(units)); }
    void end_streams() override { ++ended; }
    void close() override {}
    std::vector<UnitListPtr> lists;
    int ended = 0;

   private:
    FakeKubelet& kubelet_;
    const Resource resource_;
    const std::string endpoint_;
  };

  Result<std::unique_ptr<ResourceServer>> serve(Resource resource) override {
    if (no_room) return fail(ErrorCode::unavailable, "no socket can be made there");
    return std::make_unique<Server>(*this, resource,
                                    std::string(model::short_name(resource)) + "-" + std::to_string(++made));
  }
  [[nodiscard]] bool exists(const std::string& endpoint) const override {
    return std::find(sockets.begin(), sockets.end(), endpoint) != sockets.end();
  }
  [[nodiscard]] bool is_listening(const std::string& /*socket*/) const override { return true; }
  [[nodiscard]] std::uint64_t kubelet() const override { return identity; }
  void start_registration(Resource resource, const std::string& endpoint) override {
    registering.push_back({resource, endpoint, std::nullopt});
  }
  void ask_holders(SteadyTime now) override { asked.push_back(now); }
  void ask_allocatable(SteadyTime /*now*/) override {}

  std::map<Resource, Server*> servers;
  std::vector<std::string> sockets;
  std::vector<RegisterDone> registering;
  std::vector<SteadyTime> asked;
  std::uint64_t identity = 1;
  int made = 0;
  bool watches = true;
  bool no_room = false;
};

class FakeCheckpoint final : public CheckpointSource {
 public:
  [[nodiscard]] holdings::CheckpointVersion version() const override { return written; }
  [[nodiscard]] Result<Checkpoint> read() const override {
    Checkpoint content;
    content.allocations = allocations;
    content.version = written;
    content.written_at = written_at;
    return content;
  }
  holdings::CheckpointVersion written = 1;
  SteadyTime written_at{};
  std::vector<model::Allocation> allocations;
};

struct ServedResourcesTest : testing::Test {
  fakes::FakeClock clock;
  FakeCheckpoint checkpoint;
  Allocations allocations{{}, [this] { return checkpoint.written; }, clock};
  AdmissionGate admissions{clock, [this] { return checkpoint.written; }, [] {}};
  FakeKubelet kubelet;
  ServedResources manager{{"1-a", std::chrono::seconds(10), {}}, {clock, allocations, admissions, checkpoint, kubelet}};

  void pass(int ms) {
    clock.advance(milliseconds{ms});
    manager.run_due(admissions.progress());
  }
  void find_directory() {
    KubeletDirectory::Changes changes;
    changes.usable = true;
    manager.handle(changes);
  }
  void scan(const std::string& type) {
    allocations.set_node(node_of(type));
    manager.handle(SnapshotChanged{});
  }
  void list_holders(std::vector<model::Allocation> pods = {}) {
    manager.handle(HoldersListed{clock.now(), std::move(pods)});
  }
  void fail_list() { manager.handle(HoldersListed{clock.now(), fail(ErrorCode::unavailable, "no answer")}); }
  // The kubelet answers every Register that waits; the resources, in order.
  std::vector<Resource> register_all(const std::optional<Error>& error = std::nullopt) {
    std::vector<Resource> resources;
    for (RegisterDone& done : std::exchange(kubelet.registering, {})) {
      resources.push_back(done.resource);
      done.error = error;
      manager.handle(done);
    }
    return resources;
  }
  void write_checkpoint() {
    ++checkpoint.written;
    checkpoint.written_at = clock.now();
    KubeletDirectory::Changes changes;
    changes.checkpoints_written = 1;
    manager.handle(changes);
  }
  void restart_kubelet() {
    ++kubelet.identity;
    kubelet.sockets.clear();
    KubeletDirectory::Changes changes;
    changes.kubelet_appeared = true;
    manager.handle(changes);
  }
  void start(const std::string& type) {
    find_directory();
    list_holders();
    scan(type);
    register_all();
    write_checkpoint();
  }
  bool allocate(Resource resource, const std::vector<std::string>& units) {
    bool given = false;
    admissions.answer(resource, [&] {
      given = allocations.allocate(resource, units).has_value();
      admissions.answered(given ? Admissions::Outcome::given : Admissions::Outcome::refused);
    });
    return given;
  }
  std::size_t unhealthy(Resource resource) {
    const UnitList& list = *kubelet.servers.at(resource)->lists.back();
    return static_cast<std::size_t>(std::count_if(list.begin(), list.end(), [](auto& unit) { return !unit.healthy; }));
  }
};

}  // namespace neuron::plugin
