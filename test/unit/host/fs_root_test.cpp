#include "agent/host/fs_root.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <filesystem>
#include <stop_token>
#include <thread>

#include "test/unit/host/temp_tree.h"

namespace neuron::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ErrorCode code_of(const Result<std::string>& result) {
  return result ? ErrorCode::internal : result.error().code;
}

TEST(FsRoot, RefusesWhatIsNoDirectory) {
  TempTree tree;
  tree.write("file", "x");
  EXPECT_EQ(FsRoot::open(tree.at("absent")).error().code, ErrorCode::not_found);
  EXPECT_FALSE(FsRoot::open(tree.at("file")));
  EXPECT_FALSE(FsRoot::open(""));
}

// The kernel gives up a ".." with EAGAIN when anything is renamed meanwhile, on the whole machine.
TEST(FsRoot, RenamesElsewhereDoNotDisturbReads) {
  TempTree tree, elsewhere;
  tree.write("devices/a/vendor", "0x1d0f");
  std::string target = "../../devices/a";
  for (int i = 0; i < 20; ++i) target += "/../a";  // links in sysfs have up to ten
  tree.link("bus/pci/a", target);
  const FsRoot root = FsRoot::open(tree.at("")).value();
  elsewhere.write("a", "");
  const std::jthread renames([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::filesystem::rename(elsewhere.at("a"), elsewhere.at("b"));
      std::filesystem::rename(elsewhere.at("b"), elsewhere.at("a"));
    }
  });
  for (int i = 0; i < 20000; ++i) {
    const auto text = root.read_attribute("bus/pci/a/vendor");
    ASSERT_TRUE(text) << i << ": " << text.error().message;
  }
}

// From now on, and for all that follows in this process, openat2 fails with `os_errno`.
bool refuse_openat2(unsigned os_errno) {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | os_errno),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// In a child, as a filter stays: 0 when only the live root opens and the error names the call.
int open_without_openat2(const std::string& directory, unsigned os_errno) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!refuse_openat2(os_errno)) ::_exit(2);
    const auto other = FsRoot::open(directory);
    const bool told = !other && other.error().code == ErrorCode::failed_precondition &&
                      other.error().message.find(directory + ": nothing can be read") == 0 &&
                      other.error().message.find("openat2") != std::string::npos;
    const auto live = FsRoot::open("/");
    ::_exit(told && live && live->exists("proc") ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(FsRoot, SaysThatOpenat2IsMissingInsteadOfFindingNothing) {
  const TempTree tree;
  EXPECT_EQ(open_without_openat2(tree.path(), ENOSYS), 0);
  EXPECT_EQ(open_without_openat2(tree.path(), EPERM), 0);
}

TEST(FsRoot, OnlySlashIsLive) {
  TempTree tree;
  EXPECT_TRUE(FsRoot::open("/")->is_live());
  EXPECT_EQ(FsRoot::open("//")->path(), "/");
  EXPECT_FALSE(tree.root().is_live());
  EXPECT_EQ(FsRoot::open(tree.path() + "/")->path(), tree.path());
}

TEST(FsRoot, ReadsAttributesWithoutTrailingSpace) {
  TempTree tree;
  tree.write("sys/a", " 12, 3\n");
  tree.write("sys/empty", "");
  tree.write("sys/newline", "\n");
  const FsRoot root = tree.root();
  EXPECT_EQ(root.read_attribute("sys/a").value(), " 12, 3");
  EXPECT_EQ(root.read_attribute("sys/empty").value(), "");
  EXPECT_EQ(root.read_attribute("sys/newline").value(), "");
}

TEST(FsRoot, BadFilesAreErrorsThatNameThePath) {
  TempTree tree;
  tree.write("sys/large", std::string(4097, 'x'));
  tree.write("sys/page", std::string(4096, 'x'));
  tree.write("sys/nul", std::string("1\0002", 3));
  tree.folder("sys/folder");
  const FsRoot root = tree.root();
  EXPECT_EQ(code_of(root.read_attribute("sys/large")), ErrorCode::data_corrupt);
  EXPECT_TRUE(root.read_attribute("sys/page"));
  EXPECT_EQ(code_of(root.read_attribute("sys/nul")), ErrorCode::data_corrupt);
  EXPECT_EQ(code_of(root.read_attribute("sys/folder")), ErrorCode::data_corrupt);
  EXPECT_EQ(code_of(root.read_attribute("sys/absent")), ErrorCode::not_found);
  EXPECT_EQ(code_of(root.read_attribute(std::string(5000, 'a'))), ErrorCode::data_corrupt);
  EXPECT_EQ(code_of(root.read_attribute(std::string_view("sys/page\0x", 10))), ErrorCode::data_corrupt);
  EXPECT_THAT(root.read_attribute("sys/absent").error().message, HasSubstr("sys/absent: "));
}

TEST(FsRoot, FifoNeverBlocks) {
  TempTree tree;
  tree.fifo("sys/fifo");
  const FsRoot root = tree.root();
  EXPECT_EQ(code_of(root.read_attribute("sys/fifo")), ErrorCode::unavailable);
  EXPECT_EQ(code_of(root.read_file("sys/fifo", 100)), ErrorCode::unavailable);
  const Fd writer(::open(tree.at("sys/fifo").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(writer.valid());
  EXPECT_EQ(code_of(root.read_attribute("sys/fifo")), ErrorCode::unavailable);
  EXPECT_EQ(code_of(root.read_file("sys/fifo", 100)), ErrorCode::unavailable);
}

TEST(FsRoot, NeverEndingFilesCostOneRead) {
  TempTree tree;
  tree.link("sys/outside", "/dev/zero");
  const FsRoot root = tree.root();
  EXPECT_EQ(code_of(root.read_attribute("sys/outside")), ErrorCode::not_found);  // the tree has no dev/zero
  tree.folder("dev");
  if (::mknod(tree.at("dev/zero").c_str(), S_IFCHR | 0666, makedev(1, 5)) != 0) GTEST_SKIP() << "may not make devices";
  const Fd probe(::open(tree.at("dev/zero").c_str(), O_RDONLY | O_CLOEXEC));
  if (!probe.valid()) GTEST_SKIP() << "device nodes do not work here";
  EXPECT_EQ(code_of(root.read_attribute("sys/outside")), ErrorCode::data_corrupt);
  EXPECT_EQ(code_of(root.read_file("sys/outside", 1 << 20)), ErrorCode::data_corrupt);
}

TEST(FsRoot, LinksStayInside) {
  TempTree tree;
  tree.write("sys/real/value", "7\n");
  tree.link("sys/absolute", "/sys/real");
  tree.link("sys/relative", "real");
  tree.link("sys/escape", "../../../../../../../etc/passwd");
  tree.link("sys/loop", "loop");
  tree.link("sys/dangling", "/nowhere");
  const FsRoot root = tree.root();
  EXPECT_EQ(root.read_attribute("sys/absolute/value").value(), "7");
  EXPECT_EQ(root.read_attribute("sys/relative/value").value(), "7");
  EXPECT_EQ(code_of(root.read_attribute("sys/escape")), ErrorCode::not_found);
  EXPECT_EQ(code_of(root.read_attribute("../../../../../../etc/passwd")), ErrorCode::not_found);
  EXPECT_EQ(code_of(root.read_attribute("sys/loop")), ErrorCode::data_corrupt);
  EXPECT_FALSE(root.exists("sys/dangling"));
  EXPECT_TRUE(root.exists("sys/absolute/value"));
}

TEST(FsRoot, RealPathResolvesInsideTheRoot) {
  TempTree tree;
  tree.folder("sys/devices/pci0000:10/0000:10:1b.0");
  tree.link("sys/bus/pci/devices/0000:10:1b.0", "../../../devices/pci0000:10/0000:10:1b.0");
  tree.link("sys/class/x", "/sys/bus/pci/devices/0000:10:1b.0");
  tree.link("loop/a", "b");
  tree.link("loop/b", "a");
  tree.link("up", "../../../sys/./class//x/");
  const FsRoot root = tree.root();
  EXPECT_EQ(root.real_path("sys/class/x").value(), "sys/devices/pci0000:10/0000:10:1b.0");
  EXPECT_EQ(root.real_path("up").value(), "sys/devices/pci0000:10/0000:10:1b.0");
  EXPECT_EQ(root.real_path("sys/../..").value(), "");
  EXPECT_EQ(code_of(root.real_path("loop/a")), ErrorCode::data_corrupt);
  EXPECT_EQ(code_of(root.real_path("sys/absent/x")), ErrorCode::not_found);
}

TEST(FsRoot, LiveRootReadsTheSameWay) {
  TempTree tree;
  tree.write("value", "5\n");
  tree.link("link", "value");
  const FsRoot live = *FsRoot::open("/");
  const std::string base = tree.path().substr(1);
  EXPECT_EQ(live.read_attribute(base + "/link").value(), "5");
  EXPECT_EQ(live.read_link(base + "/link").value(), "value");
  EXPECT_EQ(live.read_link(base + "/value").error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(live.exists(base + "/value"));
  EXPECT_THAT(live.list(base).value(), ElementsAre("link", "value"));
}

TEST(FsRoot, ReadLinkDoesNotFollow) {
  TempTree tree;
  tree.link("link", "/anywhere");
  tree.write("file", "");
  EXPECT_EQ(tree.root().read_link("link").value(), "/anywhere");
  EXPECT_EQ(code_of(tree.root().read_link("file")), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(tree.root().read_link("absent")), ErrorCode::not_found);
}

TEST(FsRoot, ListsSortedNames) {
  TempTree tree;
  tree.write("d/b", "");
  tree.write("d/a", "");
  tree.write("d/.hidden", "");
  EXPECT_THAT(tree.root().list("d").value(), ElementsAre(".hidden", "a", "b"));
  EXPECT_FALSE(tree.root().list("d/a"));
  EXPECT_EQ(tree.root().list("absent").error().code, ErrorCode::not_found);
}

TEST(FsRoot, VisitsUntilItIsEnough) {
  TempTree tree(TempTree::Place::memory);
  tree.folder("many");
  for (int i = 0; i < 70000; ++i) std::ofstream(tree.at("many/" + std::to_string(i)));
  int seen = 0;
  EXPECT_TRUE(tree.root().visit("many", [&seen](std::string_view) { return ++seen > 0; }));
  EXPECT_EQ(seen, 70000) << "as many as there are";
  EXPECT_EQ(tree.root().list("many").error().code, ErrorCode::data_corrupt);
  EXPECT_TRUE(tree.root().visit("many", [&seen](std::string_view) { return --seen > 69990; }));
  EXPECT_EQ(seen, 69990);
  EXPECT_EQ(tree.root().visit("absent", [](std::string_view) { return true; }).error().code, ErrorCode::not_found);
}

TEST(FsRoot, ReadFileIsBounded) {
  TempTree tree;
  tree.write("f", std::string(200'000, 'x') + "\n");
  EXPECT_EQ(tree.root().read_file("f", 200'001).value().size(), 200'001U);
  EXPECT_EQ(code_of(tree.root().read_file("f", 200'000)), ErrorCode::data_corrupt);
}

TEST(FsRoot, SubdirectoryNamesPathsOfItsRoot) {
  TempTree tree;
  tree.write("sys/class/d/value", "1");
  tree.write("sys/class/other", "2");
  tree.link("sys/class/d/out", "../other");
  const FsRoot root = tree.root();
  const FsRoot below = *root.subdirectory("sys/class/d");
  EXPECT_EQ(below.read_attribute("value").value(), "1");
  EXPECT_FALSE(below.read_attribute("out"));
  EXPECT_THAT(below.read_attribute("absent").error().message, HasSubstr("sys/class/d/absent: "));
  EXPECT_EQ(below.identify_self().value(), root.identify("sys/class/d").value());
  EXPECT_FALSE(below.identify_self().value() == root.identify("sys/class").value());
}

}  // namespace
}  // namespace neuron::host
