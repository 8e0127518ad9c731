#include "plugin/device/supervisor.h"

#include <gtest/gtest.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>

#include "test/integration/program.h"

namespace neuron::plugin {
namespace {

using std::chrono::seconds;

// A supervisor on a kubelet directory of its own, told of signals through a pipe.
struct SupervisorTest : testing::Test {
  std::string directory = testing::TempDir() + "supervisorXXXXXX";
  fakes::TestPipe signals;
  SystemClock clock;
  std::string plugins;
  Allocations allocations{{}, [] { return holdings::CheckpointVersion{0}; }, clock};
  AdmissionGate admissions{clock, [] { return holdings::CheckpointVersion{0}; }, [] {}};
  PreStartGate pre_start{allocations, [](int, int) { return std::nullopt; }, [](const PreStartGate::Job&) {},
                         [](SteadyTime, const PreStartGate::Job&) {}, clock};
  std::unique_ptr<EventQueue> events;

  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    plugins = directory + "/device-plugins";
    ASSERT_TRUE(std::filesystem::create_directory(plugins));
    ASSERT_EQ(::fcntl(signals.reading.get(), F_SETFL, O_NONBLOCK), 0);
    events = *EventQueue::open();
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(directory, error);
  }
  void signal(int number) const {
    signalfd_siginfo info{};
    info.ssi_signo = static_cast<std::uint32_t>(number);
    ASSERT_EQ(::write(signals.writing.get(), &info, sizeof info), static_cast<ssize_t>(sizeof info));
  }
  // How a supervisor ends; by SIGTERM where it has not ended by itself in a while.
  Supervisor::Outcome run(std::function<void()> on_hangup) {
    auto outcome = std::async(std::launch::async, [&] {
      const Supervisor::Settings settings{plugins, directory + "/pod-resources/kubelet.sock", seconds(10), {}};
      const CheckpointFile checkpoint(plugins);
      Supervisor supervisor(
          {settings, clock, checkpoint, {allocations, admissions, pre_start, *events}, std::move(on_hangup)},
          signals.reading.get());
      return supervisor.run();
    });
    if (outcome.wait_for(seconds(10)) != std::future_status::ready) signal(SIGTERM);
    return outcome.get();
  }
};

// A link stands where a mount would go on showing the directory that was renamed.
TEST_F(SupervisorTest, ADirectoryThatIsRenamedWhileAnAllocateWaitsEndsIt) {
  signal(SIGHUP);
  const auto outcome = run([this] {
    std::filesystem::rename(plugins, directory + "/elsewhere");
    std::filesystem::create_directory_symlink(directory + "/elsewhere", plugins);
    admissions.answer(model::Resource::neuron,
                      [this] { admissions.wait_for_checkpoint(model::Resource::neuron, [] {}); });
    events->post(AdmissionsChanged{});
  });
  EXPECT_EQ(outcome, Supervisor::Outcome::dead_mount);
}

}  // namespace
}  // namespace neuron::plugin
