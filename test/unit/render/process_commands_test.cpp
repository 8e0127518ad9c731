#include "tools/neuron-ls/node_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/unit/render/scans.h"

namespace neuron::ls {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class ProcessCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "neuron-ls-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories((directory_ / path).parent_path());
    std::ofstream(directory_ / path, std::ios::binary) << text;
  }
  [[nodiscard]] std::map<int, std::string> commands_of(std::vector<int> pids) const {
    model::HostScan scan = test::inf2_xlarge();
    for (const int pid : pids) scan.devices[0].processes->push_back({pid, 1, 0, 0});
    const auto root = host::FsRoot::open(directory_.string());
    EXPECT_TRUE(root);
    return read_process_commands(*root, scan);
  }

  std::filesystem::path directory_;
};

TEST_F(ProcessCommands, JoinsArgumentsAndShowsControlBytes) {
  write("proc/41/cmdline", std::string_view("python3\0train.py\0--x\0", 21));
  write("proc/42/cmdline", std::string_view("a\0\x1b[31m\0", 8));
  EXPECT_THAT(commands_of({41, 42}), ElementsAre(Pair(41, "python3 train.py --x"), Pair(42, "a \\x1b[31m")));
}

TEST_F(ProcessCommands, GoneKernelThreadAndOddFilesHaveNone) {
  write("proc/43/cmdline", "");
  std::filesystem::create_directories(directory_ / "proc/44/cmdline");
  EXPECT_THAT(commands_of({0, -1, 42, 43, 44}), IsEmpty());
}

TEST_F(ProcessCommands, AContainersProcDoesNotAnswerForTheHost) {
  write("proc/41/cmdline", "another process of the same number");
  std::filesystem::create_directories(directory_ / "proc/self/ns");
  std::filesystem::create_symlink("pid:[4026532599]", directory_ / "proc/self/ns/pid");
  EXPECT_THAT(commands_of({41}), IsEmpty());
  write("proc/2/comm", "kthreadd\n");  // the host's proc, mounted into a container
  EXPECT_THAT(commands_of({41}), ElementsAre(Pair(41, "another process of the same number")));
}

TEST_F(ProcessCommands, TheFirstPidNamespaceAnswers) {
  write("proc/41/cmdline", "app");
  std::filesystem::create_directories(directory_ / "proc/self/ns");
  std::filesystem::create_symlink("pid:[4026531836]", directory_ / "proc/self/ns/pid");
  EXPECT_THAT(commands_of({41}), ElementsAre(Pair(41, "app")));
}

}  // namespace
}  // namespace neuron::ls
