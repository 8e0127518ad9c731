#include "agent/host/proc_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "agent/base/fd.h"
#include "test/unit/host/temp_tree.h"

namespace neuron::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kReadWrite = "02100002";
constexpr const char* kReadOnly = "0100000";
constexpr const char* kWriteOnly = "0104001";
constexpr DeviceUserBounds kPatient{.time = std::chrono::minutes(5)};

class DeviceUsersTest : public ::testing::Test {
 protected:
  DeviceUsersTest() { tree_.folder("proc/1/fd"); }

  void open_file(int pid, const std::string& file, std::string_view target, std::string_view flags = kReadWrite) {
    const std::string folder = "proc/" + std::to_string(pid);
    tree_.link(folder + "/fd/" + file, target);
    tree_.write(folder + "/fdinfo/" + file, "pos:\t0\nflags:\t" + std::string(flags) + "\nmnt_id:\t25\nino:\t7\n");
  }
  [[nodiscard]] DeviceUsers find(const DeviceUserBounds& bounds = {}) const {
    const auto found = find_device_users(tree_.root(), bounds);
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(DeviceUsers{{}, "(failed)"});
  }
  [[nodiscard]] Error error() const {
    const auto found = find_device_users(tree_.root());
    return found ? Error{} : found.error();
  }

  TempTree tree_{TempTree::Place::memory};
};

TEST_F(DeviceUsersTest, WhoHasADeviceOpen) {
  open_file(4290, "3", "/dev/neuron0");
  open_file(4290, "4", "/dev/neuron12");
  open_file(17, "9", "/dev/neuron0");
  open_file(17, "0", "/dev/null");
  open_file(18, "5", "socket:[4026531836]");
  const DeviceUsers found = find();
  EXPECT_THAT(found.users, ElementsAre(DeviceUser{0, 17, 9}, DeviceUser{0, 4290, 3}, DeviceUser{12, 4290, 4}));
  EXPECT_EQ(found.gap, "");
}

TEST_F(DeviceUsersTest, NobodyIsAnAnswerToo) {
  EXPECT_EQ(find(), DeviceUsers{});
}

TEST_F(DeviceUsersTest, OneEntryPerProcessWithTheLowestFile) {
  for (const char* file : {"10", "9", "100", "9999"}) open_file(17, file, "/dev/neuron3");
  EXPECT_THAT(find().users, ElementsAre(DeviceUser{3, 17, 9}));
}

// Our own queries open for writing only, which attaches nothing.
TEST_F(DeviceUsersTest, OnlyAnAttachingOpenCounts) {
  open_file(11, "3", "/dev/neuron0", kReadOnly);
  open_file(12, "3", "/dev/neuron0", kWriteOnly);
  open_file(13, "3", "/dev/neuron0", "012100000");  // O_PATH
  open_file(14, "3", "/dev/neuron0", "0100003");    // ioctl only
  for (const char* odd : {"", "  ", "8", "-2", "0x2", "two"}) {
    open_file(15, "3", "/dev/neuron0", odd);
    EXPECT_THAT(find().users, ElementsAre(DeviceUser{0, 11, 3})) << odd;
  }
}

TEST_F(DeviceUsersTest, AFileThatIsClosedMeanwhileIsNone) {
  open_file(11, "3", "/dev/neuron0");
  tree_.remove("proc/11/fdinfo/3");
  open_file(12, "3", "/dev/neuron0");
  tree_.fifo("proc/12/fdinfo/3");
  open_file(13, "3", "/dev/neuron0");
  tree_.write("proc/13/fdinfo/3", "pos:\t0\n");
  const DeviceUsers found = find();
  EXPECT_THAT(found.users, IsEmpty());
  EXPECT_EQ(found.gap, "");
}

TEST_F(DeviceUsersTest, TheNameMayBeGoneOrRelative) {
  open_file(11, "3", "/dev/neuron1 (deleted)");
  open_file(12, "3", "../../../dev/neuron2");
  EXPECT_THAT(find().users, ElementsAre(DeviceUser{1, 11, 3}, DeviceUser{2, 12, 3}));
}

TEST_F(DeviceUsersTest, WhatIsNoDevice) {
  const char* targets[] = {"/dev/neuron",
                           "/dev/neuron0x",
                           "/dev/neuron00",
                           "/dev/neuron-1",
                           "/dev/neuron 1",
                           "/dev/neuron64",
                           "/dev/neuron99999999999999999999",
                           "/dev/neuron0/x",
                           "/dev/neurons0",
                           "/dev/neuron0 (deleted) (deleted)",
                           "/tmp/dev/neuron0",
                           "/mnt/../dev/neuron0",
                           "//dev/neuron0",
                           "/dev//neuron0",
                           "/dev/dev/neuron0",
                           "neuron0",
                           "anon_inode:[neuron0]",
                           "/dev/neuron\xff"
                           "0",
                           "(deleted)"};
  int file = 3;
  for (const char* target : targets) open_file(17, std::to_string(file++), target);
  const DeviceUsers found = find();
  EXPECT_THAT(found.users, IsEmpty());
  EXPECT_EQ(found.gap, "");
}

TEST_F(DeviceUsersTest, WhatIsNoProcessAndNoFile) {
  for (const char* name : {"self", "thread-self", "0x11", "-1", "+17", "17 ", "99999999999999999999", "irq"}) {
    tree_.link("proc/" + std::string(name) + "/fd/3", "/dev/neuron0");
  }
  tree_.write("proc/21", "no folder");
  tree_.write("proc/22/fd", "no folder");
  tree_.link("proc/23/fd", "fd");
  tree_.write("proc/24/fd/3", "/dev/neuron0");
  tree_.fifo("proc/25/fd/3");
  tree_.folder("proc/26/fd/3");
  for (const char* name : {"x", "-3", "0x3", "99999999999999999999", "3 "}) open_file(27, name, "/dev/neuron0");
  tree_.folder("proc/28");
  const DeviceUsers found = find();
  EXPECT_THAT(found.users, IsEmpty());
  EXPECT_EQ(found.gap, "some users of the devices are unknown: 1 process not accessible");  // the loop
}

// What only root is shown, or of a container, cannot tell that nobody uses a device.
TEST_F(DeviceUsersTest, WithoutRightsNothingIsKnown) {
  open_file(17, "3", "/dev/neuron0");
  tree_.remove("proc/1");
  EXPECT_EQ(error().code, ErrorCode::not_found);  // hidepid=2, or a tree without processes
  tree_.remove("proc");
  EXPECT_EQ(error().code, ErrorCode::not_found);
}

TEST_F(DeviceUsersTest, ProcOfAContainerIsNotAsked) {
  open_file(17, "3", "/dev/neuron0");
  tree_.link("proc/self/ns/pid", "pid:[4026532999]");
  EXPECT_EQ(error().code, ErrorCode::failed_precondition);
  tree_.write("proc/2/comm", "kthreadd\n");  // the host's, mounted into a container
  EXPECT_THAT(find().users, SizeIs(1));
}

TEST_F(DeviceUsersTest, WhenTimeIsOutItIsTold) {
  open_file(11, "3", "/dev/neuron0");
  DeviceUserBounds bounds;
  bounds.time = std::chrono::milliseconds(0);
  EXPECT_THAT(find(bounds).users, IsEmpty());
  EXPECT_THAT(find(bounds).gap, HasSubstr("it took more than 0 ms, the rest was not examined"));
}

// Processes of a machine are bounded by the kernel (PID_MAX_LIMIT, 4194304), what a look costs by time alone.
TEST_F(DeviceUsersTest, OfSeventyThousandProcessesTheLastIsSeen) {
  constexpr int kProcesses = 70000;
  for (int pid = 2; pid < kProcesses; ++pid) ::mkdir(tree_.at("proc/" + std::to_string(pid)).c_str(), 0777);
  open_file(kProcesses, "3", "/dev/neuron0");
  const DeviceUsers found = find(kPatient);
  EXPECT_THAT(found.users, ElementsAre(DeviceUser{0, kProcesses, 3}));
  EXPECT_EQ(found.gap, "");
}

TEST_F(DeviceUsersTest, OfThousandsWithOpenFilesTheLastIsSeen) {
  constexpr int kProcesses = 5000;
  for (int pid = 2; pid < kProcesses; ++pid) tree_.link("proc/" + std::to_string(pid) + "/fd/0", "/dev/null");
  open_file(kProcesses, "3", "/dev/neuron0");
  const DeviceUsers found = find(kPatient);
  EXPECT_THAT(found.users, ElementsAre(DeviceUser{0, kProcesses, 3}));
  EXPECT_EQ(found.gap, "");
}

TEST_F(DeviceUsersTest, OfSeventyThousandFilesTheLowestAreLookedAt) {
  open_file(17, "3", "/dev/neuron0");
  for (int file = 4; file < 70000; ++file) std::ofstream(tree_.at("proc/17/fd/" + std::to_string(file)));
  const DeviceUsers found = find(kPatient);
  EXPECT_THAT(found.users, ElementsAre(DeviceUser{0, 17, 3}));
  EXPECT_THAT(found.gap, HasSubstr("1 process with more than 1024 open files"));
}

TEST_F(DeviceUsersTest, OfManyFilesTheLowestAreLookedAt) {
  DeviceUserBounds bounds;
  bounds.files_each = 20;
  for (int file = 0; file < 20; ++file) open_file(17, std::to_string(file), "/dev/null");
  open_file(17, "7", "/dev/neuron0");
  EXPECT_EQ(find(bounds).gap, "");
  open_file(17, "100", "/dev/neuron1");
  EXPECT_THAT(find(bounds).users, ElementsAre(DeviceUser{0, 17, 7}));
  EXPECT_THAT(find(bounds).gap, AllOf(HasSubstr("1 process with more than 20 open files"), Not(HasSubstr("refused"))));
}

TEST_F(DeviceUsersTest, AProcessWithEveryDeviceManyTimes) {
  for (int file = 0; file < 1500; ++file)
    open_file(17, std::to_string(file), "/dev/neuron" + std::to_string(file % 100));
  const DeviceUsers found = find();
  EXPECT_THAT(found.users, SizeIs(64));
  EXPECT_THAT(found.gap, HasSubstr("1 process with more than 1024 open files"));
}

// A machine of our own: namespaces of mounts and processes, whose /dev holds what the test makes and whose pid 2 is
// called as on every host. The body runs in a process of it. Exit codes: 0 as expected, 1 not, kMayNot: not allowed.
constexpr int kMayNot = 77;

int exit_code_of(pid_t child) {
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return kMayNot;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

template <typename Body>
pid_t spawn(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int on_own_machine(const std::function<bool()>& body) {
  return exit_code_of(spawn([&body] {
    if (::unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) return kMayNot;
    return exit_code_of(spawn([&body] {  // pid 1
      const bool ready =
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
          ::mount("proc", "/proc", "proc", 0, nullptr) == 0 && ::mount("none", "/dev", "tmpfs", 0, nullptr) == 0 &&
          ::mknod("/dev/neuron0", S_IFCHR | 0666, makedev(1, 3)) == 0 && Fd(::open("/dev/neuron0", O_RDWR)).valid();
      if (!ready) return kMayNot;
      int named[2] = {-1, -1};
      if (::pipe(named) != 0) return kMayNot;
      const pid_t second = spawn([&named] {
        ::prctl(PR_SET_NAME, "kthreadd");
        ::close(named[1]);
        return ::pause();
      });
      ::close(named[1]);
      char none = 0;
      const bool done = second == 2 && ::read(named[0], &none, 1) == 0;
      return done ? exit_code_of(spawn([&body] { return body() ? 0 : 1; })) : kMayNot;
    }));
  }));
}

std::vector<DeviceUser> users_now() {
  const auto found = find_device_users(*FsRoot::open("/"));
  return found && found->gap.empty() ? found->users : std::vector<DeviceUser>{{-1, -1, -1}};
}

TEST(DeviceUsersLive, AProcessThatHoldsADevice) {
  const int code = on_own_machine([] {
    if (!users_now().empty()) return false;
    const Fd free(::open("/dev/neuron0", O_WRONLY | O_NONBLOCK));
    if (!users_now().empty()) return false;
    const Fd device(::open("/dev/neuron0", O_RDWR | O_CLOEXEC));
    const std::vector<DeviceUser> expected = {{0, ::getpid(), device.get()}};
    if (users_now() != expected) return false;
    ::unlink("/dev/neuron0");
    return users_now() == expected;
  });
  if (code == kMayNot) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(code, 0);
}

// A container may give a device another name, and a name to what is no device. The minor number decides.
TEST(DeviceUsersLive, TheDriversNumbersBeatTheName) {
  TempTree tree;
  tree.write("devices", "Character devices:\n  1 mem\n  1 neuron\n\nBlock devices:\n  7 neuron\n");
  const int code = on_own_machine([&] {
    if (::mount(tree.at("devices").c_str(), "/proc/devices", nullptr, MS_BIND, nullptr) != 0) ::_exit(kMayNot);
    std::ofstream("/dev/neuron1") << "a file";
    ::mknod("/dev/neuron2", S_IFCHR | 0666, makedev(5, 2));
    const Fd renamed(::open("/dev/neuron0", O_RDWR));  // 1:3
    const Fd file(::open("/dev/neuron1", O_RDWR));
    const Fd other_driver(::open("/dev/neuron2", O_RDWR | O_NOCTTY));
    return file.valid() && users_now() == std::vector<DeviceUser>{{3, ::getpid(), renamed.get()}};
  });
  if (code == kMayNot) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(code, 0);
}

// As somebody else: not even one's own processes are told, since the list would look complete.
TEST(DeviceUsersLive, WithoutRightsNothingIsKnown) {
  const int code = on_own_machine([] {
    const Fd device(::open("/dev/neuron0", O_RDWR));
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(kMayNot);
    const auto found = find_device_users(*FsRoot::open("/"));
    return !found && found.error().code == ErrorCode::permission_denied;
  });
  if (code == kMayNot) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace neuron::host
