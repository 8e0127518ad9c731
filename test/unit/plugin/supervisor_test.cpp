#include "plugin/device/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <numeric>

#include "plugin/kubelet/socket_file.h"
#include "test/integration/program.h"
#include "test/unit/plugin/service_parts.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;

// Sockets of this process that are connected to a socket with that path.
int connections_to(const std::string& path) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    sockaddr_un peer{};
    socklen_t size = sizeof peer;
    const int fd = std::stoi(entry.path().filename());
    const bool connected =
        ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;  // NOLINT: as POSIX has it
    if (connected && peer.sun_family == AF_UNIX && path == peer.sun_path) ++count;
  }
  return count;
}

// The real supervisor on a thread, told of signals through a pipe.
struct SupervisorTest : ServicePartsTest {
  static constexpr seconds kStopDeadline{5};  // of a stop, whatever goes on

  Workers workers;
  fakes::TestPipe signals;
  std::function<void()> on_rescan = [] {};
  std::future<Supervisor::Outcome> outcome;
  KubeletDirectory::WhenServed when_served = KubeletDirectory::WhenServed::end;

  void SetUp() override {
    ServicePartsTest::SetUp();
    ASSERT_EQ(::fcntl(signals.reading.get(), F_SETFL, O_NONBLOCK), 0);
  }
  void TearDown() override {
    if (outcome.valid()) (void)stopped();
    ServicePartsTest::TearDown();
  }
  void signal(int number) const {
    signalfd_siginfo info{};
    info.ssi_signo = static_cast<std::uint32_t>(number);
    ASSERT_EQ(::write(signals.writing.get(), &info, sizeof info), static_cast<ssize_t>(sizeof info));
  }
  void start() {
    note([this] { states_.clear(); });
    outcome = std::async(std::launch::async, [this] {
      const Supervisor::Settings settings{plugins, pod_resources, seconds(10), {}, "", when_served};
      const CheckpointFile checkpoint(plugins);
      const auto rescan = [this] {
        on_rescan();
        note([this] { ++rescans_; });
      };
      const auto report_serving = [this](const ServingState& state) {
        note([&] {
          ++passes_;
          if (states_.empty() || states_.back() != state) states_.push_back(state);
        });
      };
      Supervisor supervisor({settings, clock, workers, checkpoint, parts(), rescan, report_serving},
                            signals.reading.get());
      return supervisor.run();
    });
  }
  // How it ended, the destructor included; nullopt when it has not by now.
  std::optional<Supervisor::Outcome> ended() {
    if (outcome.wait_for(kStopDeadline) != std::future_status::ready) return std::nullopt;
    return outcome.get();
  }
  // By SIGTERM.
  std::optional<Supervisor::Outcome> stopped() {
    signal(SIGTERM);
    return ended();
  }

  // What the callbacks have told. The waits are false when it has not come in time.
  [[nodiscard]] bool wait_for_rescans(int count) {
    return wait_until([&] { return rescans_ == count; });
  }
  [[nodiscard]] bool wait_for_step(ServingStep step) {
    return wait_until([&] { return !states_.empty() && step_of(states_.back()) == step; });
  }
  [[nodiscard]] bool wait_for_waiting() {
    return wait_until([&] { return !states_.empty() && states_.back().waited; });
  }
  [[nodiscard]] bool wait_for_scan() {
    return wait_until([&] { return !states_.empty() && states_.back().scanned; });
  }
  // Each once, in the order in which they came first.
  [[nodiscard]] std::vector<ServingStep> steps() {
    const std::lock_guard lock(mutex_);
    std::vector<ServingStep> steps;
    for (const ServingState& state : states_) {
      const ServingStep step = step_of(state);
      if (std::find(steps.begin(), steps.end(), step) == steps.end()) steps.push_back(step);
    }
    return steps;
  }
  // How long after `cause` the loop makes its next pass.
  [[nodiscard]] milliseconds time_to_pass(const std::function<void()>& cause) {
    const SteadyTime before = clock.now();
    int passes = 0;
    note([&] { passes = passes_; });
    cause();
    EXPECT_TRUE(wait_until([&] { return passes_ > passes; }));
    return std::chrono::duration_cast<milliseconds>(clock.now() - before);
  }

  // Asked again at each pass of the loop; false when it did not become true in time.
  bool wait_until(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, condition);
  }

 private:
  static ServingStep step_of(const ServingState& state) {
    for (const ResourceReadiness& one : state.resources) {
      if (one.resource == model::Resource::neuron) return one.step;
    }
    return ServingStep::not_offered;
  }
  void note(const std::function<void()>& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::vector<ServingState> states_;  // each that differs from the one before it
  int passes_ = 0;
  int rescans_ = 0;
};

// A link stands where a mount would go on showing the directory that was renamed.
TEST_F(SupervisorTest, ADirectoryThatIsRenamedWhileAnAllocateWaitsEndsIt) {
  ASSERT_TRUE(std::filesystem::create_directory(plugins));
  on_rescan = [this] {  // within one pass, so that no other sees the path without the link
    std::filesystem::rename(plugins, directory + "/elsewhere");
    std::filesystem::create_directory_symlink(directory + "/elsewhere", plugins);
    admissions.answer(model::Resource::neuron,
                      [this] { admissions.wait_for_checkpoint(model::Resource::neuron, clock.now(), [] {}); });
  };
  signal(SIGHUP);
  start();
  EXPECT_EQ(ended(), Supervisor::Outcome::dead_mount);
}

TEST_F(SupervisorTest, SigtermAndSigintEndItBeforeThereIsAnything) {
  for (const int number : {SIGTERM, SIGINT}) {
    start();
    signal(number);
    EXPECT_EQ(ended(), Supervisor::Outcome::stopped) << number;
  }
}

TEST_F(SupervisorTest, SigtermEndsItWhileTheKubeletWatches) {
  start_kubelet();
  scan();
  start();
  ASSERT_TRUE(wait_for_step(ServingStep::registered));
  EXPECT_EQ(stopped(), Supervisor::Outcome::stopped);
  EXPECT_TRUE(kubelet_has(0)) << "its stream has ended";
}

// A connection that stays connects again by itself whenever the kubelet restarts.
TEST_F(SupervisorTest, ConnectionsToTheKubeletEndWithTheirCalls) {
  start_kubelet();
  scan();
  start();
  ASSERT_TRUE(wait_for_step(ServingStep::registered));
  ASSERT_TRUE(kubelet->wait_for([&] { return kubelet->list_calls() > 0; }, kDeadline));
  for (const std::string& socket : {pod_resources, plugins + "/kubelet.sock"}) {
    EXPECT_TRUE(wait_until([&] { return connections_to(socket) == 0; })) << socket;
  }
}

TEST_F(SupervisorTest, WhatTheKubeletAsksIsCounted) {
  start_kubelet();
  scan();
  start();
  // All three, so that no list of a later one tells of the failure below.
  for (const auto& [name, units] :
       {std::pair{"aws.amazon.com/neuroncore", 2}, {"aws.amazon.com/neuron", 1}, {"aws.amazon.com/neurondevice", 1}}) {
    ASSERT_TRUE(kubelet->wait_for([&] { return kubelet->allocatable(name) == units; }, kDeadline)) << name;
  }
  const auto run = [this](const std::string& name) {
    sim::PodSpec pod;
    pod.name = name;
    pod.containers.push_back({"main", sim::ContainerKind::app, {{kNeuron, 1}}, {}, {}});
    return kubelet->admit(pod);
  };
  // Fails after the last list: the kubelet does not know it yet.
  auto failing = snapshot_of("trn1.2xlarge");
  failing->host.devices[0].health = {model::HealthState::unhealthy, "x", "it failed", ""};
  allocations.set_node(std::make_shared<const grant::NodeUnits>(failing));
  ASSERT_FALSE(run("refused"));
  scan();
  // After the refusal a list may have told the kubelet of the failure; it then refuses by itself until the next one.
  bool given = false;
  for (int attempt = 0; !given && attempt < 100; ++attempt) {
    ASSERT_TRUE(kubelet_has(1));
    given = run("given-" + std::to_string(attempt)).has_value();
  }
  ASSERT_TRUE(given);
  const CallFigures::Counts counts = figures.counts();
  EXPECT_EQ(counts.registrations.find(kNeuron)->second, 1U);
  EXPECT_EQ(counts.refusals, (CallFigures::ByName{{"unhealthy", 1}}));
  EXPECT_EQ(counts.allocations, (CallFigures::ByName{{kNeuron, 1}}));
  const auto& allocate = counts.calls.find("Allocate")->second;
  EXPECT_EQ(std::accumulate(allocate.counts.begin(), allocate.counts.end(), std::uint64_t{0}), 2U);
  EXPECT_EQ(allocate.failed, 1U);
  EXPECT_EQ(counts.calls.count("GetPreferredAllocation") + counts.calls.count("PreStartContainer"), 2U);
}

TEST_F(SupervisorTest, SigtermEndsItWhilePodResourcesHang) {
  start_kubelet({.pod_resources = fakes::PodResourcesFault::hangs});
  scan();
  start();
  ASSERT_TRUE(kubelet->wait_for([&] { return kubelet->list_calls() > 0; }, kDeadline));
  EXPECT_EQ(stopped(), Supervisor::Outcome::stopped);
}

TEST_F(SupervisorTest, SigtermEndsItWhileRegisterHangs) {
  start_kubelet({.registration = fakes::RegisterFault::hangs});
  scan();
  start();
  ASSERT_TRUE(wait_for_step(ServingStep::registering));
  EXPECT_EQ(stopped(), Supervisor::Outcome::stopped);
}

TEST_F(SupervisorTest, SigtermEndsAPreStartThatWaitsForADevice) {
  std::promise<void> asked;
  ask_device = [&](const auto&) { asked.set_value(); };  // and it never answers
  start_kubelet();
  scan();
  start();
  ASSERT_TRUE(kubelet_has(1));
  auto admitted = std::async(std::launch::async, [this] {
    return kubelet->admit({"train", "ml", {{.name = "main", .requests = {{kNeuron, 1}}}}});
  });
  ASSERT_EQ(asked.get_future().wait_for(kDeadline), std::future_status::ready);
  EXPECT_EQ(stopped(), Supervisor::Outcome::stopped);
  const auto pod = admitted.get();
  ASSERT_TRUE(pod);
  EXPECT_NE(pod->containers.at(0).start_error, "") << "the container is not started";
}

TEST_F(SupervisorTest, SighupScansAgainEachTime) {
  start();
  signal(SIGHUP);
  EXPECT_TRUE(wait_for_rescans(1));
  signal(SIGHUP);
  signal(SIGHUP);
  EXPECT_TRUE(wait_for_rescans(3));
  EXPECT_EQ(stopped(), Supervisor::Outcome::stopped);
}

TEST_F(SupervisorTest, ADirectoryThatAppearsLaterIsUsed) {
  scan();
  start();
  ASSERT_TRUE(wait_for_step(ServingStep::waiting));
  start_kubelet();
  EXPECT_TRUE(kubelet_has(1));
}

TEST_F(SupervisorTest, AKubeletThatAppearsLaterIsUsed) {
  ASSERT_TRUE(std::filesystem::create_directory(plugins));
  scan();
  start();
  ASSERT_TRUE(wait_for_step(ServingStep::waiting));
  start_kubelet();
  EXPECT_TRUE(kubelet_has(1));
}

TEST_F(SupervisorTest, AKubeletThatStartsAnewIsRegisteredWithAgain) {
  start_kubelet();
  scan();
  start();
  ASSERT_TRUE(kubelet_has(1));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(kubelet->restart());
    EXPECT_TRUE(kubelet_has(1));
  }
}

// Soon: what else wakes the loop comes every 2 s.
TEST_F(SupervisorTest, AStreamThatTheKubeletEndsIsRegisteredAgainSoon) {
  start_kubelet();
  scan();
  start();
  ASSERT_TRUE(kubelet_has(1));
  std::vector<SteadyTime::duration> times;
  for (const int registrations : {2, 3, 4}) {
    const SteadyTime before = clock.now();
    ASSERT_TRUE(kubelet->drop_client(kNeuron));
    ASSERT_TRUE(kubelet->wait_for([&] { return kubelet->registrations(kNeuron) == registrations; }, kDeadline));
    ASSERT_TRUE(kubelet_has(1));
    times.push_back(clock.now() - before);
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[1], seconds{1});
}

TEST_F(SupervisorTest, ADirectoryThatIsLostIsWaitedFor) {
  start_kubelet();
  scan();
  start();
  ASSERT_TRUE(kubelet_has(1));
  kubelet->go_down();
  std::filesystem::remove_all(plugins);
  ASSERT_TRUE(wait_for_step(ServingStep::waiting));
  ASSERT_TRUE(kubelet->come_up());
  EXPECT_TRUE(kubelet_has(1));
  EXPECT_EQ(stopped(), Supervisor::Outcome::stopped);
}

TEST_F(SupervisorTest, AnotherAgentThatHoldsTheLockEndsIt) {
  ASSERT_TRUE(std::filesystem::create_directory(plugins));
  const auto lock = InstanceLock::take(plugins);
  ASSERT_TRUE(lock);
  start();
  EXPECT_EQ(ended(), Supervisor::Outcome::other_agent);
}

TEST_F(SupervisorTest, AnotherAgentIsWaitedForWhenAsked) {
  when_served = KubeletDirectory::WhenServed::wait;
  start_kubelet();
  std::optional<Result<InstanceLock>> lock(InstanceLock::take(plugins));
  ASSERT_TRUE(lock->has_value());
  scan();
  start();
  ASSERT_TRUE(wait_for_waiting());
  EXPECT_EQ(stopped(), Supervisor::Outcome::stopped);
  EXPECT_EQ(kubelet->registrations(kNeuron), 0);
  start();
  ASSERT_TRUE(wait_for_waiting());
  lock.reset();
  EXPECT_TRUE(kubelet_has(1));
}

TEST_F(SupervisorTest, TellsHowFarItIs) {
  start();
  ASSERT_TRUE(wait_for_step(ServingStep::not_offered));
  scan();
  ASSERT_TRUE(wait_for_scan());
  ASSERT_TRUE(wait_for_step(ServingStep::waiting));
  start_kubelet({.registration = fakes::RegisterFault::hangs});
  ASSERT_TRUE(wait_for_step(ServingStep::registering));
  ASSERT_TRUE(kubelet->set_faults({}));
  ASSERT_TRUE(wait_for_step(ServingStep::registered));
  std::vector<ServingStep> seen = steps();
  std::erase(seen, ServingStep::unwatched);  // which passes quickly
  EXPECT_THAT(seen, ElementsAre(ServingStep::not_offered, ServingStep::waiting, ServingStep::registering,
                                ServingStep::registered));
  kubelet->go_down();
  EXPECT_TRUE(wait_for_step(ServingStep::waiting));
  ASSERT_TRUE(kubelet->come_up());
  EXPECT_TRUE(wait_for_step(ServingStep::registered));
}

// Nothing is due for 2 s, so of three waits at least one is short.
TEST_F(SupervisorTest, AnEventAndAChangeOfTheDirectoryWakeItAtOnce) {
  ASSERT_TRUE(std::filesystem::create_directory(plugins));
  start();
  ASSERT_TRUE(wait_for_step(ServingStep::not_offered));
  std::vector<milliseconds> event;
  std::vector<milliseconds> change;
  for (const std::string name : {"1", "2", "3"}) {
    event.push_back(time_to_pass([this] { events->post(AdmissionsChanged{}); }));
    change.push_back(time_to_pass([&] { std::ofstream(plugins + "/" + name) << "x"; }));
  }
  EXPECT_THAT(event, Contains(testing::Lt(seconds{1})));
  EXPECT_THAT(change, Contains(testing::Lt(seconds{1})));
}

}  // namespace
}  // namespace neuron::plugin
