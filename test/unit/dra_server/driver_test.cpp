#include "plugin/dra/serve/driver.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <optional>

#include "plugin/kubelet/socket_file.h"
#include "test/unit/dra_server/server_fixture.h"

namespace neuron::plugin::dra {
namespace {

using fakes::FakeDraKubelet;
using testing::HasSubstr;

// One driver on a thread of its own.
class Running {
 public:
  enum class Node { scanned, hangs };
  Running(ServerFixture& fixture, const std::string& uid, Node node = Node::scanned)
      : Running(fixture, fixture.health, uid, node) {}
  Running(ServerFixture& fixture, HealthHub& health, const std::string& uid, Node node = Node::scanned) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    reading_ = Fd(ends[0]);
    writing_ = Fd(ends[1]);
    driver_.emplace(Driver::Parts{{fixture.kubelet_dir, kDriver, uid, std::chrono::milliseconds(300)},
                                  clock_,
                                  *events_,
                                  fixture.claims,
                                  health,
                                  workers_,
                                  [this] { ++registered; },
                                  [this] { ++rescans; },
                                  [this](const DriverState& state) {
                                    const std::lock_guard lock(mutex_);
                                    state_ = state;
                                  }},
                    reading_.get());
    if (node == Node::scanned) events_->post(NodeScanned{});
    ended_ = std::async(std::launch::async, [this] {
      const auto outcome = driver_->run();
      driver_.reset();
      return outcome;
    });
  }
  ~Running() {
    if (ended_.valid()) static_cast<void>(stop());
  }
  void signal(int number) {
    signalfd_siginfo info{};
    info.ssi_signo = static_cast<std::uint32_t>(number);
    if (::write(writing_.get(), &info, sizeof(info)) != sizeof(info)) std::abort();
  }
  [[nodiscard]] Driver::Outcome stop() {
    signal(SIGTERM);
    return ended_.get();
  }
  [[nodiscard]] Driver::Outcome outcome() { return ended_.get(); }
  [[nodiscard]] DriverState state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  void post(DriverEvent event) { events_->post(std::move(event)); }
  std::atomic<int> registered = 0;
  std::atomic<int> rescans = 0;

 private:
  SystemClock clock_;
  Workers workers_;
  std::unique_ptr<Driver::Events> events_ = *Driver::Events::open();
  Fd reading_;
  Fd writing_;
  mutable std::mutex mutex_;
  DriverState state_;
  std::optional<Driver> driver_;
  std::future<Driver::Outcome> ended_;
};

struct DriverTest : ServerFixture {
  [[nodiscard]] std::string registration(const std::string& uid) const {
    return registry() + "/neuron.aws.com-" + uid + "-reg.sock";
  }
  static bool await(const FakeDraKubelet& kubelet, const std::function<bool()>& condition) {
    return kubelet.wait_for(condition, kPatience);
  }
};

TEST_F(DriverTest, ServesRegistersAndEndsAsAsked) {
  const FakeDraKubelet kubelet(kubelet_dir);
  publish("neuron-device-0", DeviceHealth::State::healthy);
  Running driver(*this, "uid-1");
  ASSERT_TRUE(await(kubelet, [&] { return driver.registered == 1 && driver.state().registered; }));
  EXPECT_TRUE(kubelet.prepare(kDriver, one("train", "u-1")).status.ok());
  ASSERT_TRUE(await(kubelet, [&] { return !kubelet.health().empty(); }));
  driver.signal(SIGHUP);
  EXPECT_TRUE(await(kubelet, [&] { return driver.rescans == 1; }));
  EXPECT_EQ(driver.stop(), Driver::Outcome::stopped);
  EXPECT_FALSE(std::filesystem::exists(registration("uid-1")));
  EXPECT_FALSE(std::filesystem::exists(claims_dir() + "/dra-uid-1.sock"));
}

TEST_F(DriverTest, AScanThatHangsIsNotWaitedForForLong) {
  const FakeDraKubelet kubelet(kubelet_dir);
  Running driver(*this, "uid-1", Running::Node::hangs);
  EXPECT_TRUE(await(kubelet, [&] { return driver.registered == 1; }));
}

TEST_F(DriverTest, WaitsForTheKubeletsDirectoryInWords) {
  std::filesystem::remove_all(kubelet_dir + "/plugins_registry");
  const FakeDraKubelet kubelet(kubelet_dir);
  Running driver(*this, "uid-1");
  ASSERT_TRUE(await(kubelet, [&] { return !driver.state().problem.empty(); }));
  EXPECT_THAT(driver.state().problem, HasSubstr("plugins_registry"));
  std::filesystem::create_directory(registry());
  EXPECT_TRUE(await(kubelet, [&] { return driver.state().registered; }));
  EXPECT_EQ(driver.state().problem, "");
}

TEST_F(DriverTest, AKubeletThatRestartsIsNewsForThePublisher) {
  FakeDraKubelet kubelet(kubelet_dir);
  Running driver(*this, "uid-1");
  ASSERT_TRUE(await(kubelet, [&] { return driver.registered == 1; }));
  kubelet.restart();
  EXPECT_TRUE(await(kubelet, [&] { return driver.registered == 2; }));
  EXPECT_TRUE(kubelet.prepare(kDriver, one("train", "u-1")).status.ok());
}

TEST_F(DriverTest, SocketsThatAreRemovedAreServedAnew) {
  const FakeDraKubelet kubelet(kubelet_dir);
  Running driver(*this, "uid-1");
  ASSERT_TRUE(await(kubelet, [&] { return driver.state().registered; }));
  std::filesystem::remove(registration("uid-1"));
  ASSERT_TRUE(await(kubelet, [&] { return driver.registered == 2; }));
  std::filesystem::remove(claims_dir() + "/dra-uid-1.sock");
  ASSERT_TRUE(await(kubelet, [&] { return driver.registered == 3; }));
  EXPECT_TRUE(kubelet.prepare(kDriver, one("train", "u-1")).status.ok());
  std::filesystem::rename(registry(), kubelet_dir + "/old");
  std::filesystem::create_directory(registry());
  EXPECT_TRUE(await(kubelet, [&] { return driver.registered == 4; }));
  EXPECT_TRUE(kubelet.prepare(kDriver, one("train", "u-2")).status.ok());
}

TEST_F(DriverTest, ARefusalIsSaidAndTheKubeletTriesAgain) {
  FakeDraKubelet::Options options;
  options.refuses = "endpoint is in use";
  FakeDraKubelet kubelet(kubelet_dir, options);
  Running driver(*this, "uid-1");
  ASSERT_TRUE(await(kubelet, [&] { return !driver.state().problem.empty(); }));
  EXPECT_THAT(driver.state().problem, HasSubstr("endpoint is in use"));
  EXPECT_EQ(driver.registered, 0);
  kubelet.refuse("RegisterPlugin error -- no handler registered for plugin type: DRAPlugin at socket x");
  EXPECT_TRUE(await(kubelet, [&] { return driver.state().problem.find("1.34.2 or newer") != std::string::npos; }));
  kubelet.refuse("");
  EXPECT_TRUE(await(kubelet, [&] { return driver.state().registered; }));
}

TEST_F(DriverTest, ASuccessorServesBesideAndTellsHealthAgainOnceThePeerHasGone) {
  const FakeDraKubelet kubelet(kubelet_dir);
  publish("neuron-device-0", DeviceHealth::State::healthy);
  HealthHub health_of_old;  // another process
  health_of_old.publish(std::make_shared<const HealthList>(HealthList{"node-1", {}}));
  std::optional<Running> old(std::in_place, *this, health_of_old, "uid-1");
  ASSERT_TRUE(await(kubelet, [&] { return old->state().registered; }));
  Running young(*this, "uid-2");
  ASSERT_TRUE(await(kubelet, [&] { return young.state().registered; }));
  EXPECT_EQ(kubelet.plugin(kDriver)->socket, "neuron.aws.com-uid-2-reg.sock");
  old.reset();
  EXPECT_TRUE(kubelet.prepare(kDriver, one("train", "u-1")).status.ok());
  ASSERT_TRUE(await(kubelet, [&] { return kubelet.taken(kDriver) == 1; }));
  EXPECT_TRUE(kubelet.wait_for([&] { return !kubelet.health().empty(); }, std::chrono::seconds(8)))
      << "sooner than the next turn of ten seconds";
}

TEST_F(DriverTest, EndsForAFreshMountOfTheCdiDirectory) {
  const FakeDraKubelet kubelet(kubelet_dir);
  Running driver(*this, "uid-1");
  ASSERT_TRUE(await(kubelet, [&] { return driver.state().registered; }));
  driver.post(CdiMountDead{});
  EXPECT_EQ(driver.outcome(), Driver::Outcome::dead_mount);
}

TEST_F(DriverTest, ADevicePluginOnTheNodeIsSaidAndLeftAlone) {
  std::filesystem::create_directory(kubelet_dir + "/device-plugins");
  const auto plugin = InstanceLock::take(kubelet_dir + "/device-plugins");
  ASSERT_TRUE(plugin);
  Running driver(*this, "uid-1");
  EXPECT_EQ(driver.outcome(), Driver::Outcome::other_agent);
  EXPECT_TRUE(std::filesystem::is_empty(registry()));
}

}  // namespace
}  // namespace neuron::plugin::dra
