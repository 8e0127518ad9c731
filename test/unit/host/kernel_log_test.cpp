#include "agent/host/kernel_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "agent/core/complete.h"
#include "agent/host/scanner.h"
#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using model::KernelLogState;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What each read gives: a record, or an error.
struct Device {
  std::deque<std::pair<std::string, int>> answers;
  KernelRecords::Read read() {
    return [this](std::span<char> into) -> ssize_t {
      if (answers.empty()) return -EAGAIN;
      const auto [text, error] = answers.front();
      answers.pop_front();
      if (error != 0) return -error;
      std::memcpy(into.data(), text.data(), text.size());
      return static_cast<ssize_t>(text.size());
    };
  }
  void add(int sequence) { answers.emplace_back("3," + std::to_string(sequence) + ",7,-;text\n", 0); }
  void fail(int error) { answers.emplace_back("", error); }
};

class KernelRecordsTest : public ::testing::Test {
 protected:
  std::vector<std::uint64_t> read() {
    std::vector<std::uint64_t> numbers;
    result_ = records_.read(device_.read(), [&](const auto& record) { numbers.push_back(record.sequence); });
    return numbers;
  }
  Device device_;
  KernelRecords records_;
  Result<bool> result_ = false;
};

TEST_F(KernelRecordsTest, ReadsWhatIsNew) {
  device_.add(40);
  device_.fail(EINTR);
  device_.add(41);
  EXPECT_THAT(read(), ElementsAre(40, 41));
  EXPECT_THAT(read(), IsEmpty());
  device_.add(42);
  EXPECT_THAT(read(), ElementsAre(42));
  EXPECT_EQ(records_.lost(), 0U) << "what was gone before the first read is not lost";
}

TEST_F(KernelRecordsTest, CountsWhatWasOverwritten) {
  device_.add(1);
  device_.fail(EPIPE);
  device_.add(5);
  device_.fail(EINVAL);
  device_.add(7);
  EXPECT_THAT(read(), ElementsAre(1, 5, 7));
  EXPECT_EQ(records_.lost(), 4U);
}

TEST_F(KernelRecordsTest, AfterAFailureNothingComesTwice) {
  device_.add(1);
  device_.add(2);
  device_.fail(EIO);
  EXPECT_THAT(read(), ElementsAre(1, 2));
  ASSERT_FALSE(result_);
  EXPECT_THAT(result_.error().message, HasSubstr("dev/kmsg"));
  for (int number : {1, 2, 3}) device_.add(number);
  EXPECT_THAT(read(), ElementsAre(3));
}

TEST_F(KernelRecordsTest, AFloodIsReadInParts) {
  for (int number = 0; number < KernelRecords::kMaxRecords + 1; ++number) device_.add(number);
  EXPECT_THAT(read(), SizeIs(KernelRecords::kMaxRecords));
  ASSERT_TRUE(result_);
  EXPECT_TRUE(*result_);
  EXPECT_THAT(read(), SizeIs(1));
  EXPECT_FALSE(*result_);
}

// The log as the system call gives it: its newest bytes from the start of a line.
struct Caller {
  std::string log;
  int error = 0;
  std::size_t largest = 0;
  KernelTexts::Call call() {
    return [this](std::span<char> into) -> ssize_t {
      if (error != 0) return -error;
      if (into.empty()) return static_cast<ssize_t>(log.size());
      std::string_view text = log;
      if (text.size() > into.size()) {
        text.remove_prefix(text.size() - into.size());
        text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
      }
      largest = std::max(largest, text.size());
      std::memcpy(into.data(), text.data(), text.size());
      return static_cast<ssize_t>(text.size());
    };
  }
  void add(int second, const std::string& text = "text") {
    log += "<3>[    " + std::to_string(second) + ".000000] " + text + '\n';
  }
};

class KernelTextsTest : public ::testing::Test {
 protected:
  std::vector<long> read() {
    std::vector<long> seconds;
    result_ =
        texts_.read(caller_.call(), [&](const auto& record) { seconds.push_back(record.time.count() / 1'000'000); });
    return seconds;
  }
  Caller caller_;
  KernelTexts texts_;
  Result<void> result_;
};

TEST_F(KernelTextsTest, TimesTellWhatIsNew) {
  EXPECT_THAT(read(), IsEmpty());
  caller_.add(1);
  caller_.add(2);
  EXPECT_THAT(read(), ElementsAre(1, 2));
  EXPECT_THAT(read(), IsEmpty());
  caller_.add(3);
  EXPECT_THAT(read(), ElementsAre(3));
  EXPECT_EQ(texts_.gaps(), 0U);
}

TEST_F(KernelTextsTest, LinesOfOneTimeAreEachGivenOnce) {
  caller_.add(1);
  caller_.add(2, "first");
  caller_.add(2, "second");
  EXPECT_THAT(read(), ElementsAre(1, 2, 2));
  caller_.add(2, "second");
  caller_.add(2, "third");
  EXPECT_THAT(read(), ElementsAre(2, 2));
  EXPECT_THAT(read(), IsEmpty());
  caller_.add(3);
  EXPECT_THAT(read(), ElementsAre(3));
  EXPECT_EQ(texts_.gaps(), 0U);
}

TEST_F(KernelTextsTest, OfLinesOfOneTimeSomeMayBeLost) {
  caller_.add(2);
  caller_.add(2);
  EXPECT_THAT(read(), SizeIs(2));
  caller_.log.clear();
  caller_.add(2);
  caller_.add(3);
  EXPECT_THAT(read(), ElementsAre(3));
  EXPECT_EQ(texts_.gaps(), 1U);
}

TEST_F(KernelTextsTest, LooksBackOnlyAsFarAsItMust) {
  caller_.add(1);
  for (int i = 0; i < 600; ++i) caller_.add(2, std::string(1000, 'x'));
  caller_.add(3);
  EXPECT_THAT(read(), SizeIs(602));
  caller_.largest = 0;
  caller_.add(4);
  EXPECT_THAT(read(), ElementsAre(4));
  EXPECT_LE(caller_.largest, 256U << 10U);
  for (int i = 0; i < 600; ++i) caller_.add(5, std::string(1000, 'x'));
  EXPECT_THAT(read(), SizeIs(600));
  EXPECT_EQ(texts_.gaps(), 0U);
}

TEST_F(KernelTextsTest, SaysThatSomethingMayBeLost) {
  caller_.add(1);
  EXPECT_THAT(read(), ElementsAre(1));
  caller_.log.clear();
  caller_.add(5);
  EXPECT_THAT(read(), ElementsAre(5));
  EXPECT_EQ(texts_.gaps(), 1U);
}

TEST_F(KernelTextsTest, FailsWithoutRightsAndWithoutTimes) {
  caller_.error = EPERM;
  read();
  ASSERT_FALSE(result_);
  EXPECT_EQ(result_.error().code, ErrorCode::permission_denied);
  caller_.error = 0;
  caller_.log = "<3>text\n";
  read();
  ASSERT_FALSE(result_);
  EXPECT_THAT(result_.error().message, HasSubstr("printk.time"));
}

TEST(LiveKernelLog, IsReadOnce) {
  const FsRoot root = *FsRoot::open("/");
  KernelLogReader log(root);
  if (!log.open()) GTEST_SKIP() << "the kernel log may not be read here";
  EXPECT_EQ(*log.open(), KernelLogReader::Part::lookback);
  std::uint64_t last = 0;
  const auto in_order = [&](const health::KernelRecord& record) {
    EXPECT_GE(record.sequence, last);
    last = record.sequence;
  };
  ASSERT_TRUE(log.read(in_order));
  EXPECT_EQ(*log.open(), KernelLogReader::Part::news);
  ASSERT_TRUE(log.read(in_order));
}

class ScannedKernelLog : public ::testing::Test {
 protected:
  ScannedKernelLog() {
    for (int index : {0, 1}) write_device(tree_, index, Generation::trn2_2_30);
  }
  model::HostScan scan() { return scanner_.scan(); }
  void write(const std::string& lines) { tree_.write("dev/kmsg", lines); }

  TempTree tree_;
  FsRoot root_ = tree_.root();
  Scanner scanner_{root_, {.with_topology = false, .kernel_log = KernelLogUse::wanted}};
};

TEST_F(ScannedKernelLog, OfAFileIsWhatTheFileSays) {
  write(
      "3,1,5,-;NEURON_HW_ERR=DMA_ERROR nd-id=1\n DEVICE=x\n3,2,6,-;NEURON_HW_ERR=DMA_ERROR nd-id=2\nnonsense\n"
      "3,3,7,-;NEURON_HW_ERR=DMA_ERROR nd-id=0");
  const auto log = scan().kernel_log;
  EXPECT_EQ(log.state, KernelLogState::reading);
  EXPECT_EQ(log.problem, std::nullopt);
  EXPECT_THAT(log.errors, ElementsAre(Field(&model::KernelLogError::device, 1))) << "no newline, no record yet";
  EXPECT_EQ(log.ignored_lines, 1U);
  EXPECT_EQ(scan().kernel_log, log) << "counted once";
  write("3,1,5,-;text\n");
  EXPECT_THAT(scan().kernel_log.errors, IsEmpty());
}

TEST_F(ScannedKernelLog, ThatIsNotThereIsSaid) {
  const auto found = scan();
  EXPECT_EQ(found.kernel_log.state, KernelLogState::broken);
  ASSERT_TRUE(found.kernel_log.problem);
  EXPECT_EQ(found.kernel_log.problem->path, "dev/kmsg");
  EXPECT_THAT(found.problems, Contains(*found.kernel_log.problem));
  Scanner quiet(root_, {.with_topology = false, .kernel_log = KernelLogUse::where_allowed});
  EXPECT_THAT(quiet.scan().problems, IsEmpty());
  EXPECT_EQ(quiet.scan().kernel_log.state, KernelLogState::broken);
  Scanner none(root_, {.with_topology = false});
  EXPECT_EQ(none.scan().kernel_log, model::KernelLog{});
}

TEST_F(ScannedKernelLog, ThatIsSomethingElseIsBroken) {
  tree_.fifo("dev/kmsg");
  EXPECT_EQ(scan().kernel_log.state, KernelLogState::broken);
  tree_.remove("dev/kmsg");
  tree_.folder("dev/kmsg");
  EXPECT_EQ(scan().kernel_log.state, KernelLogState::broken);
  tree_.remove("dev/kmsg");
  write(std::string((1U << 20U) + 1, 'x'));
  EXPECT_THAT(scan().kernel_log.problem->detail, HasSubstr("more than 1048576 bytes"));
  write("");
  EXPECT_EQ(scan().kernel_log.state, KernelLogState::reading);
}

TEST_F(ScannedKernelLog, WaitsForDevices) {
  tree_.remove("sys/class/neuron_device");
  write("3,1,5,-;NEURON_HW_ERR=DMA_ERROR nd-id=1\n");
  EXPECT_EQ(scan().kernel_log.ignored_lines, 0U);
  write_device(tree_, 1, Generation::trn2_2_30);
  EXPECT_THAT(scan().kernel_log.errors, SizeIs(1));
}

TEST_F(ScannedKernelLog, OfAPartThatHangsIsWhatWasReadLast) {
  write("3,1,5,-;NEURON_HW_ERR=DMA_ERROR nd-id=1\n");
  core::SeenBefore seen;
  auto first = scan();
  core::keep_last_seen(first, seen);
  auto hanging = scanner_.scan([](const model::ScanPart& part) { return part.kind != model::ScanPart::Kind::host; });
  EXPECT_EQ(hanging.kernel_log, model::KernelLog{});
  hanging.unanswered = {{{model::ScanPart::Kind::host}, "2026-01-31T23:59:59Z"}};
  core::keep_last_seen(hanging, seen);
  EXPECT_EQ(hanging.kernel_log, first.kernel_log);
}

}  // namespace
}  // namespace neuron::host
