// How the programs end: by signals, with an archive unpacked, with streams that are closed, full or left by their
// reader.

#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "test/fakes/paths.h"
#include "test/integration/node.h"
#include "test/integration/program.h"
#include "test/integration/shell.h"

namespace neuron::fakes {
namespace {

namespace fs = std::filesystem;

bool becomes(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Ends : public ::testing::Test {
 protected:
  Ends() {
    std::string pattern = "/tmp/neuron-ends-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    directory_ = pattern;
    fs::create_directory(temporary());
    fs::create_directory(kubelet_dir());
  }
  ~Ends() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string temporary() const { return directory_ / "tmp"; }
  [[nodiscard]] std::string kubelet_dir() const { return directory_ / "kubelet"; }
  [[nodiscard]] bool is_clean() const { return fs::is_empty(temporary()); }
  // An archive of a simulated machine.
  std::string archive() {
    const std::string path = directory_ / "host.tar.gz";
    FakeHost host("trn1.2xlarge");
    host.write();
    const Ended ended = run_line(bin_dir() + "/neuron-gather --root " + host.path() + " -o " + path);
    EXPECT_EQ(ended.status, 0) << ended.output;
    return path;
  }

  fs::path directory_;
};

TEST_F(Ends, NoUnpackedArchiveIsLeftBehind) {
  const std::string root = archive();
  TestPipe in;
  TestPipe full;
  full.fill();
  struct Case {
    std::vector<std::string> words;
    int out = -1;
  };
  // Those that would end by themselves are kept by an output that nobody reads.
  const std::vector<Case> cases = {
      {{"neuron-ls", "--root", root, "--watch", "1"}},
      {{"neuron-ls", "--root", root}, full.writing.get()},
      {{"neuron-top", "--root", root, "--json", "--interval", "200ms"}},
      {{"neuron-gather", "--root", root, "-o", "-"}, full.writing.get()},
      {{"neuron-agent", "check", "--root", root}, full.writing.get()},
      {{"neuron-agent", "run", "--once", "--root", root}, full.writing.get()},
      {{"neuron-agent", "run", "--root", root, "--kubelet-dir", kubelet_dir()}},
      {{"neuron-sim", "kubelet", "--root", root, "--kubelet-dir", kubelet_dir()}},
  };
  for (const Case& one : cases) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
      if (number == SIGHUP && one.words[1] == "run" && one.words[2] == "--root")
        continue;  // looks at the machine again
      const std::string what = one.words[0] + ' ' + one.words[1] + ", signal " + std::to_string(number);
      Program program(one.words, temporary(), {in.reading.get(), one.out, -1});
      ASSERT_TRUE(becomes([&] { return !is_clean(); })) << what;
      program.signal(number);
      EXPECT_TRUE(program.wait(kPatience)) << what;
      ASSERT_TRUE(becomes([&] { return is_clean(); })) << what;
    }
  }
}

TEST_F(Ends, EveryProgramTakesAnArchive) {
  const std::string root = archive();
  const std::string before = "cd " + directory_.string() + " && TMPDIR=" + temporary() + ' ' + bin_dir() + '/';
  const Ended once = run_line(before + "neuron-agent run --once --root " + root + " 2>&1");
  EXPECT_EQ(once.output,
            "aws.amazon.com/neuroncore 2 of 2 allocatable\naws.amazon.com/neuron 1 of 1 allocatable\n"
            "vpc.amazonaws.com/efa 0 of 0 allocatable\n");
  const Ended kubelet =
      run_line(before + "neuron-sim kubelet --root " + root + " --kubelet-dir " + kubelet_dir() + " 2>&1 < /dev/null");
  EXPECT_EQ(kubelet.status, 0) << kubelet.output;
  EXPECT_TRUE(is_clean());
}

TEST_F(Ends, OneLookEndsBySignals) {
  FakeHost host("trn1.2xlarge");
  host.write();
  TestPipe full;
  full.fill();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Program program({"neuron-agent", "run", "--once", "--root", host.path()}, temporary(),
                    {-1, full.writing.get(), -1});
    program.signal(number);
    EXPECT_EQ(program.wait(kPatience), -number);
  }
}

TEST_F(Ends, AWatchIntoAFullPipeEndsBySignals) {
  FakeHost host("trn2.48xlarge");
  host.write();
  constexpr int kPage = 4096;  // a pipe's least, less than a listing
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    TestPipe pipe;
    ASSERT_EQ(::fcntl(pipe.writing.get(), F_SETPIPE_SZ, kPage), kPage);
    Program program({"neuron-ls", "--root", host.path(), "--watch", "1", "--output-format", "json"}, temporary(),
                    {-1, pipe.writing.get(), -1});
    ASSERT_TRUE(becomes([&] {
      int unread = 0;
      return ::ioctl(pipe.reading.get(), FIONREAD, &unread) == 0 && unread == kPage;
    }));
    program.signal(number);
    EXPECT_EQ(program.wait(kPatience), 0) << "signal " << number;
  }
}

// Nothing that a program opens becomes its standard output.
TEST_F(Ends, WithoutStandardOutput) {
  FakeHost host("trn1.2xlarge");
  host.write();
  const std::string root = " --root " + host.path();
  for (const std::string& command :
       {"neuron-top --json" + root, "neuron-top --once" + root, "neuron-ls" + root, "neuron-ls --watch 1" + root,
        "neuron-agent check" + root, "neuron-gather -o -" + root, "neuron-sim node --list" + std::string()}) {
    for (const char* closed : {">&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
      const std::string line = "timeout 20 " + bin_dir() + '/' + command + ' ' + closed;
      const int status = run_line("{ " + line + "; } 2> /dev/null").status;
      EXPECT_TRUE(status == 1 || status == 2) << line << ": " << status;
    }
  }
}

// A child that was not waited for has no verdict to tell.
TEST_F(Ends, WithSigchldIgnoredByWhoStartsIt) {
  FakeHost host("trn1.2xlarge");
  host.write();
  const std::string check = bin_dir() + "/neuron-agent check --root " + host.path();
  const auto plain = run_line(check);
  EXPECT_LE(plain.status, 1) << plain.output;
  EXPECT_EQ(run_line("env --ignore-signal=CHLD " + check).status, plain.status);
}

// A container runtime's soft limit may be 1024 and less; the hard one is what the agent may have.
TEST_F(Ends, TheSoftLimitOfDescriptorsIsRaisedAtTheStart) {
  Node node("trn1.2xlarge");
  node.host.write();
  node.start_kubelet();
  AgentProcess agent(node.arguments(), directory_ / "log",
                     {"sh", "-c", "ulimit -Sn 64 && ulimit -Hn 2000 && exec \"$@\"", "sh"});
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1)) << agent.log();
  std::ifstream limits("/proc/" + std::to_string(agent.pid()) + "/limits");
  std::string line;
  while (std::getline(limits, line) && !line.starts_with("Max open files")) {
  }
  std::istringstream numbers(line.substr(std::min(line.size(), std::string("Max open files").size())));
  int soft = 0, hard = 0;
  numbers >> soft >> hard;
  EXPECT_EQ(soft, 2000) << line;
  EXPECT_EQ(hard, 2000) << line;
}

TEST_F(Ends, AReaderOfTheLogThatLeavesEndsNothing) {
  Node node("trn1.2xlarge");
  node.host.write();
  node.start_kubelet();
  std::vector<std::string> words = node.arguments();
  words.insert(words.begin(), {"neuron-agent", "run"});
  TestPipe log;
  Program agent(words, temporary(), {-1, -1, log.writing.get()});
  log = TestPipe();  // closes both ends
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1));
  agent.signal(SIGHUP);
  agent.signal(SIGTERM);
  EXPECT_EQ(agent.wait(kPatience), 0);
}

TEST_F(Ends, ALogThatNobodyReadsDelaysNothing) {
  Node node("trn1.2xlarge");
  node.host.write();
  node.start_kubelet();
  std::vector<std::string> words = node.arguments();
  words.insert(words.begin(), {"neuron-agent", "run"});
  TestPipe log;
  log.fill();
  Program agent(words, temporary(), {-1, -1, log.writing.get()});
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1));
  agent.signal(SIGTERM);
  EXPECT_EQ(agent.wait(std::chrono::seconds(5)), 0);
}

TEST(Repeats, ADirectoryForCdiThatCannotBeWrittenIsSaidOnce) {
  Node node("trn1.32xlarge");
  node.extra_arguments = {"--cdi", "--cdi-dir", "/proc/cdi"};
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  for (int device = 0; device < 3; ++device) {
    node.host.set("neuron" + std::to_string(device), "sram_ecc_uncorrected=1");
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 15 - device));
  }
  EXPECT_EQ(count_of(node.agent->log(), "CDI specs not written"), 1U) << node.agent->log();
}

}  // namespace
}  // namespace neuron::fakes
