#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/dra/claim/claim_preparer.h"
#include "plugin/dra/claim/claim_upkeep.h"
#include "test/fakes/fake_api.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/dra/claim_texts.h"
#include "test/unit/dra/scratch.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {

// Timers that the test fires, and memory that it says is in use. Thread-safe.
class Leftovers {
 public:
  void set(int device, int physical_core, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    memory_[{device, physical_core}] = bytes;
  }
  void set_unreadable(int device, int physical_core) {
    const std::lock_guard lock(mutex_);
    memory_[{device, physical_core}] = std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint64_t> memory(int device, int physical_core) const {
    const std::lock_guard lock(mutex_);
    const auto found = memory_.find({device, physical_core});
    return found == memory_.end() ? std::optional<std::uint64_t>(0) : found->second;
  }
  void post(SteadyTime when, MemoryGate::Job job) {
    const std::lock_guard lock(mutex_);
    timers_.emplace_back(when, std::move(job));
    changed_.notify_all();
  }
  // Until so many timers wait to be fired; false after 20 s.
  [[nodiscard]] bool wait_for_timers(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return timers_.size() >= count; });
  }
  void advance(fakes::FakeClock& clock, std::chrono::milliseconds time) {
    clock.advance(time);
    std::deque<std::pair<SteadyTime, MemoryGate::Job>> due;
    {
      const std::lock_guard lock(mutex_);
      due.swap(timers_);
    }
    for (auto& [when, job] : due) {
      if (when <= clock.now()) {
        job();
      } else {
        post(when, std::move(job));
      }
    }
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::optional<std::uint64_t>> memory_;
  std::deque<std::pair<SteadyTime, MemoryGate::Job>> timers_;
};

// A node with the driver on it: an API server in memory, files in a directory of its own.
class ClaimsTest : public testing::Test {
 protected:
  static constexpr const char* kDriver = "neuron.aws.com";

  // One process with the driver in it.
  struct Instance {
    Instance(ClaimsTest& test, const std::string& boot_id)
        : store({kDriver, test.directory(), test.cdi(), boot_id}, [&test] { return test.node_; }),
          claims({kDriver, "n1", {}, {"neuron.aws.com/unhealthy", "NoSchedule"}},
                 {[&test] {
                    if (test.meanwhile_) std::exchange(test.meanwhile_, nullptr)();
                    return test.node_;
                  },
                  [&test] { return test.scanned_; },
                  [&test](int device, int core) {
                    if (test.before_commit_) test.before_commit_(core);
                    return test.leftovers_.memory(device, core);
                  },
                  [](const MemoryGate::Job& job) { job(); },
                  [&test](SteadyTime when, MemoryGate::Job job) { test.leftovers_.post(when, std::move(job)); },
                  [&test] { return test.plugin_holders_; },
                  [&test]() -> Result<PodsOfClaims::PodNames> { return test.pods_here_; }},
                 store, test.api_, test.clock_),
          sweep(kDriver, "n1",
                {[&test]() -> Result<std::vector<model::Allocation>> { return test.listed_; },
                 [&test] { return test.node_; },
                 [&test](int device, int core) { return test.leftovers_.memory(device, core); }, test.own_pod_},
                store, test.api_, test.clock_) {}
    RecordStore store;
    ClaimPreparer claims;
    ClaimSweep sweep;
  };

  void SetUp() override { restart(); }
  void restart(const std::string& boot_id = "boot-1") { agent_ = std::make_unique<Instance>(*this, boot_id); }
  [[nodiscard]] std::unique_ptr<Instance> another_instance() { return std::make_unique<Instance>(*this, "boot-1"); }

  [[nodiscard]] std::string directory() const { return scratch_.path() + "/kubelet/plugins/neuron.aws.com"; }
  [[nodiscard]] std::string cdi() const { return scratch_.path() + "/cdi"; }
  [[nodiscard]] std::string cdi_file(const std::string& uid) const {
    return cdi() + "/k8s.neuron.aws.com-claim_" + uid + ".json";
  }
  [[nodiscard]] json cdi_of(const std::string& uid) const {
    return json::parse(read_text(cdi_file(uid)), nullptr, false);
  }
  // "NEURON_RT_VISIBLE_CORES=0-3" of a request, "" when it has no variables.
  [[nodiscard]] std::string env_of(const std::string& uid, const std::string& request) const {
    const json spec = cdi_of(uid);
    if (!spec.is_object()) return "";
    for (const json& device : spec["devices"]) {
      if (device["name"] == uid + "-request-" + request) return device["containerEdits"]["env"][0];
    }
    return "";
  }

  static std::string claim_path(const std::string& name) {
    return "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/" + name;
  }
  static std::string uid_of(const std::string& name) { return "uid-" + name; }
  // A claim that one container of one pod uses, all of it.
  void put_claim(const std::string& name, const std::vector<ResultText>& results, const json& configs = json::array()) {
    json claim = claim_json(name, uid_of(name), results, configs);
    reserve_for(claim, "pod-" + name, "pod-uid-" + name);
    api_.put(claim_path(name), claim);
    put_pod("pod-" + name, {{"main", {{name, ""}}}}, "pod-uid-" + name);
  }
  void put_pod(const std::string& name, const std::vector<ContainerText>& containers, const std::string& uid) {
    api_.put("/api/v1/namespaces/default/pods/" + name, pod_json(name, uid, containers));
  }
  [[nodiscard]] static ClaimRef ref(const std::string& name) { return {"default", name, uid_of(name)}; }
  [[nodiscard]] std::map<std::string, PrepareAnswer> prepare_all(const std::vector<std::string>& names) {
    std::vector<ClaimRef> refs;
    for (const std::string& name : names) refs.push_back(ref(name));
    return agent_->claims.prepare(refs, {});
  }
  [[nodiscard]] PrepareAnswer prepare(const std::string& name) { return prepare_all({name}).at(uid_of(name)); }
  [[nodiscard]] std::string unprepare(const std::string& name) {
    return agent_->claims.unprepare({ref(name)}).at(uid_of(name));
  }
  [[nodiscard]] std::size_t prepared() { return agent_->store.view()->records.size(); }

  void change_node(const std::function<void(model::HostScan&)>& change) {
    auto snapshot = std::make_shared<model::Snapshot>(node_->snapshot());
    change(snapshot->host);
    node_ = std::make_shared<const grant::NodeUnits>(std::move(snapshot));
  }

  Scratch scratch_;
  fakes::FakeApi api_;
  fakes::FakeClock clock_;
  Leftovers leftovers_;
  grant::NodeUnitsPtr node_ = node_of("trn1.32xlarge");  // two cores per device
  grant::NodeUnitsPtr scanned_;
  std::vector<model::Allocation> listed_;
  std::string own_pod_;
  std::function<void()> meanwhile_;         // runs once, when the next Prepare has read its claims
  std::function<void(int)> before_commit_;  // runs when a Prepare reads the memory of a physical core that it chose
  Result<PodsOfClaims::PodNames> pods_here_ = PodsOfClaims::PodNames();
  Result<PluginHolders> plugin_holders_ = PluginHolders();
  std::unique_ptr<Instance> agent_;
};

}  // namespace neuron::plugin::dra
