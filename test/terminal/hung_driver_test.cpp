// The live screen beside a driver that hangs: keys go on working, and the screen says that its values are stale.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

#include "tools/neuron-top/options.h"
#include "tools/screen/live.h"
#include "tools/screen/terminal.h"

namespace neuron::top {
namespace {

constexpr int kPatienceMs = 60'000;

// Answers once, then never again.
Moment answer_once(const model::UsageRequest&) {
  static std::atomic<int> calls{0};
  if (calls++ > 0) {
    for (;;) ::pause();
  }
  Moment moment;
  moment.scan.instance_type = "trn2.48xlarge";
  moment.scan.instance_id = "i-0123456789abcdef0";
  return moment;
}

int run_screen() {
  ::setenv("TERM", "xterm", 1);
  const auto signals = screen::catch_signals();
  const auto terminal = screen::Terminal::open(render::ColourDepth::none);
  const auto sampler = Sampler::open(answer_once);
  if (!signals || !terminal || !sampler) return 2;
  LiveOptions options;
  options.interval = options.stale_after = std::chrono::milliseconds(10);
  options.charset = render::Charset::ascii;
  return run_live(options, **terminal, **sampler, signals->get()) ? 0 : 3;
}

// Reads what the screen sends until `text` has come.
testing::AssertionResult wait_for(int terminal, const std::string& text) {
  std::string seen;
  while (seen.find(text) == std::string::npos) {
    pollfd fd{terminal, POLLIN, 0};
    std::array<char, 4096> buffer{};
    if (::poll(&fd, 1, kPatienceMs) != 1) return testing::AssertionFailure() << "never saw " << text << " in " << seen;
    const ssize_t count = ::read(terminal, buffer.data(), buffer.size());
    if (count <= 0) return testing::AssertionFailure() << "ended without " << text << ": " << seen;
    seen.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return testing::AssertionSuccess();
}

void press(int terminal, char key) {
  ASSERT_EQ(::write(terminal, &key, 1), 1);
}

TEST(HungDriver, IsToldAndLeavesTheKeysAlone) {
  const winsize size{24, 80, 0, 0};
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) ::_exit(run_screen());
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(wait_for(terminal, "stale since "));
  press(terminal, 'e');
  EXPECT_TRUE(wait_for(terminal, "EFA Interfaces"));
  press(terminal, 'q');
  EXPECT_TRUE(wait_for(terminal, "\x1b[?1049l")) << "the screen is given back";
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  ::close(terminal);
}

}  // namespace
}  // namespace neuron::top
