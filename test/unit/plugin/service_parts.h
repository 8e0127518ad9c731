#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plugin/device/plugin_server.h"
#include "plugin/kubelet/checkpoint.h"
#include "test/fakes/fake_kubelet.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {

inline constexpr std::chrono::seconds kDeadline{10};  // a wait that takes this long has failed
inline constexpr const char* kNeuron = "aws.amazon.com/neuron";

// A kubelet's directory, a kubelet stand-in in it once it is started, and all that the resources of a process share.
// What processes use of the devices cannot be told: PreStartContainer holds nobody back.
struct ServicePartsTest : testing::Test {
  std::string directory = "/tmp/neuron-parts-XXXXXX";
  std::string plugins;  // the one below it that the device plugins use; made by the kubelet
  std::string pod_resources;
  SystemClock clock;
  std::unique_ptr<EventQueue> events = *EventQueue::open();
  CallFigures figures;
  Allocations allocations{{}, [this] { return version(); }, clock};
  AdmissionGate admissions{clock, [this] { return version(); }, [this] { events->post(AdmissionsChanged{}); }};
  std::function<void(const PreStartGate::Job&)> ask_device = [](const auto& job) { job(); };  // in gRPC's threads
  PreStartGate pre_start{allocations, [](int, int) { return std::nullopt; },
                         [this](const PreStartGate::Job& job) { ask_device(job); },
                         [](SteadyTime, const PreStartGate::Job&) {}, clock};
  std::unique_ptr<fakes::FakeKubelet> kubelet;

  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    plugins = directory + "/device-plugins";
    pod_resources = directory + "/pod-resources/kubelet.sock";
  }
  void TearDown() override {
    kubelet.reset();
    std::error_code error;
    std::filesystem::remove_all(directory, error);
  }
  [[nodiscard]] DevicePluginService::Parts parts() { return {allocations, admissions, pre_start, *events, &figures}; }
  void start_kubelet(const fakes::KubeletFaults& faults = {}) {
    fakes::FakeKubeletOptions options;
    options.faults = faults;
    options.dial_timeout = std::chrono::milliseconds{200};
    auto started = fakes::FakeKubelet::start(directory, options);
    ASSERT_TRUE(started) << started.error().message;
    kubelet = *std::move(started);
  }
  // One device of two cores.
  void scan() {
    allocations.set_node(node_of("trn1.2xlarge"));
    events->post(SnapshotChanged{});
  }
  [[nodiscard]] bool kubelet_has(int units) const {
    return kubelet->wait_for([&] { return kubelet->allocatable(kNeuron) == units; }, kDeadline);
  }

 private:
  [[nodiscard]] holdings::CheckpointVersion version() const { return CheckpointFile(plugins).version(); }
};

}  // namespace neuron::plugin
