// neuron-ls --watch: the real program in a pipe, and in a terminal of its own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>

#include "agent/base/fd.h"
#include "test/unit/render/ls_program.h"
#include "tools/neuron-ls/watch.h"

namespace neuron {
namespace {

using std::chrono::steady_clock;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::chrono::seconds kPatience(60);

// What every picture on a terminal ends with.
constexpr const char* kPictureEnd = "\x1b[J";

// neuron-ls running, with stdout (and in a terminal stderr too) to be read here.
class Running {
 public:
  Running(pid_t pid, int output) : pid_(pid), output_(output) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

  // Reads until `text` was seen `times` times since the start, or patience ends.
  bool sees(const std::string& text, int times = 1) {
    const auto deadline = steady_clock::now() + kPatience;
    while (count(text) < times) {
      if (steady_clock::now() > deadline || !read_some()) return false;
    }
    return true;
  }
  // The reader goes away.
  void stop_reading() { output_ = Fd(); }
  // Its exit status once it has ended by itself.
  int end() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Its exit status after all output was read; -1 when it did not end by itself.
  int end_by(int signal) {
    ::kill(pid_, signal);
    while (read_some()) {
    }
    return end();
  }
  void send(int signal) const { ::kill(pid_, signal); }
  bool stops_by(int signal) const {
    send(signal);
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  void resize(unsigned short rows, unsigned short columns) const {
    const winsize size{rows, columns, 0, 0};
    ASSERT_EQ(::ioctl(output_.get(), TIOCSWINSZ, &size), 0);
  }
  void forget() { seen_.clear(); }
  [[nodiscard]] const std::string& seen() const { return seen_; }

 private:
  [[nodiscard]] int count(const std::string& text) const {
    int found = 0;
    for (auto at = seen_.find(text); at != std::string::npos; at = seen_.find(text, at + 1)) ++found;
    return found;
  }
  bool read_some() {
    pollfd source{output_.get(), POLLIN, 0};
    if (::poll(&source, 1, 1000 * static_cast<int>(kPatience.count())) <= 0) return false;
    std::array<char, 65536> buffer;  // NOLINT: read() fills it
    const ssize_t length = ::read(output_.get(), buffer.data(), buffer.size());
    if (length <= 0) return false;
    seen_.append(buffer.data(), static_cast<std::size_t>(length));
    return true;
  }

  pid_t pid_;
  Fd output_;
  std::string seen_;
};

class LsWatch : public test::LsProgram {
 protected:
  void execute(std::vector<std::string> arguments, bool on_host) const {
    if (on_host) arguments.insert(arguments.begin(), {"--root", host().string()});
    arguments.insert(arguments.begin(), program());
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  std::unique_ptr<Running> in_pipe(const std::vector<std::string>& arguments, bool on_host = true) const {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      execute(arguments, on_host);
    }
    ::close(ends[1]);
    return std::make_unique<Running>(pid, ends[0]);
  }
  std::unique_ptr<Running> in_terminal(const std::vector<std::string>& arguments, unsigned short rows = 50) const {
    int master = -1;
    const winsize size{rows, 160, 0, 0};
    const pid_t pid = ::forkpty(&master, nullptr, nullptr, &size);
    if (pid == 0) {
      ::setenv("TERM", "xterm-256color", 1);
      execute(arguments, true);
    }
    return std::make_unique<Running>(pid, master);
  }
};

TEST_F(LsWatch, PipesGetTablesWithABlankLineBetween) {
  simulate("inf2.xlarge");
  const auto running = in_pipe({"--watch", "0.1"});
  ASSERT_TRUE(running->sees("instance-type", 3)) << running->seen();
  EXPECT_EQ(running->end_by(SIGTERM), 0);
  const std::string once = run("").out;
  EXPECT_THAT(running->seen(), StartsWith(once + '\n' + once + '\n'));
  EXPECT_THAT(running->seen(), Not(HasSubstr("\x1b")));
}

TEST_F(LsWatch, JsonIsOneDocumentPerLine) {
  simulate("inf2.xlarge");
  const auto running = in_pipe({"--watch", "0.1", "--output-format", "json"});
  ASSERT_TRUE(running->sees("\n", 2));
  EXPECT_EQ(running->end_by(SIGINT), 0);
  const std::string line = running->seen().substr(0, running->seen().find('\n'));
  EXPECT_EQ(nlohmann::json::parse(line)["format"], "neuron-ls/1");
  EXPECT_EQ(running->seen().substr(line.size() + 1, line.size()), line);
}

TEST_F(LsWatch, ChangesShowAndVanishedDevicesStay) {
  simulate("trn1.32xlarge");
  const auto running = in_pipe({"--watch", "0.1", "--health"});
  ASSERT_TRUE(running->sees("all healthy"));
  set("neuron5", "vanish");
  EXPECT_TRUE(running->sees("device_vanished")) << running->seen();
  EXPECT_THAT(running->seen(), HasSubstr("| 15     | 2      | 30-31"));  // nobody is numbered anew
  set("neuron5", "heal");
  running->forget();
  EXPECT_TRUE(running->sees("all healthy"));
  EXPECT_EQ(running->end_by(SIGTERM), 0);
}

TEST_F(LsWatch, NothingToListAtFirstIsAFailure) {
  EXPECT_EQ(run("--watch 0.1").exit_code, 1);
  std::filesystem::create_directories(host());
  const auto outcome = run("--watch 0.1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("no Neuron device"));
}

TEST_F(LsWatch, TerminalIsRedrawnInPlaceAndGivenBack) {
  simulate("inf2.xlarge");
  const auto running = in_terminal({"--watch", "0.1", "--health"});
  ASSERT_TRUE(running->sees("\x1b[Hneuron-ls every 0.1 s", 3)) << running->seen();
  EXPECT_THAT(running->seen(), StartsWith("\x1b[?1049h"));
  EXPECT_THAT(running->seen(), HasSubstr("healthy\x1b[0m")) << "health has colour on a terminal";
  running->forget();
  EXPECT_EQ(running->end_by(SIGINT), 0);
  EXPECT_THAT(running->seen(), HasSubstr("\x1b[?7h\x1b[?25h\x1b[?1049l"));
  EXPECT_THAT(running->seen(), EndsWith("all healthy.\r\n")) << "the last table stays";
}

TEST_F(LsWatch, ASmallTerminalSaysHowMuchIsBelow) {
  simulate("trn1.32xlarge");
  const auto running = in_terminal({"--watch", "60"}, 10);
  ASSERT_TRUE(running->sees("... 15 more lines")) << running->seen();
  running->resize(12, 160);
  EXPECT_TRUE(running->sees("... 13 more lines")) << running->seen();
  EXPECT_EQ(running->end_by(SIGHUP), 0);
}

TEST_F(LsWatch, StoppingGivesTheTerminalBackForAWhile) {
  simulate("inf2.xlarge");
  const auto running = in_terminal({"--watch", "60"});
  ASSERT_TRUE(running->sees(kPictureEnd));  // all of it: the kernel hands a picture out in parts
  running->forget();
  ASSERT_TRUE(running->stops_by(SIGTSTP));
  running->send(SIGCONT);
  EXPECT_TRUE(running->sees(kPictureEnd));
  EXPECT_THAT(running->seen(), StartsWith("\x1b[?7h\x1b[?25h\x1b[?1049l\x1b[?1049h"));
  EXPECT_EQ(running->end_by(SIGINT), 0);
}

TEST_F(LsWatch, ALookThatHangsDoesNotKeepTheProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ls::block_watch_signals();
    const ls::WatchPlan plan;
    ::_exit(10 + ls::watch(plan, [&ends]() -> ls::Shown {
              (void)!::write(ends[1], "x", 1);
              for (;;) ::pause();
            }));
  }
  Running running(pid, ends[0]);
  ::close(ends[1]);
  ASSERT_TRUE(running.sees("x"));
  EXPECT_EQ(running.end_by(SIGTERM), 0);
}

// The unpacked archive goes with the program, also when the reader of stdout has seen enough.
TEST_F(LsWatch, AReaderThatGoesEndsItWell) {
  simulate("inf2.xlarge");
  const auto archive = directory_ / "host.tar";
  ASSERT_EQ(std::system(("tar -C " + host().string() + " -cf " + archive.string() + " .").c_str()), 0);
  const auto place = directory_ / "tmp";
  std::filesystem::create_directory(place);
  ::setenv("TMPDIR", place.c_str(), 1);
  const auto running = in_pipe({"--root", archive.string(), "--watch", "0.1"}, false);
  ::unsetenv("TMPDIR");
  ASSERT_TRUE(running->sees("instance-type"));
  EXPECT_FALSE(std::filesystem::is_empty(place));
  running->stop_reading();
  EXPECT_EQ(running->end(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(place));
}

TEST_F(LsWatch, AFullDiskIsSaid) {
  simulate("inf2.xlarge");
  const std::string command = "timeout 60 " + program() + " --watch 0.1 --root " + host().string() + " >/dev/full 2>" +
                              (directory_ / "err").string();
  const int status = std::system(command.c_str());
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1);
  EXPECT_THAT(test::text_of(directory_ / "err"), HasSubstr("writing to stdout"));
}

TEST_F(LsWatch, NoColourWhereNobodyWantsIt) {
  simulate("inf2.xlarge");
  ::setenv("NO_COLOR", "1", 1);
  const auto running = in_terminal({"--health"});
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(running->sees("all healthy"));
  EXPECT_THAT(running->seen(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace neuron
