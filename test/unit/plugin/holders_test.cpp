#include "plugin/device/holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kNeuron = "aws.amazon.com/neuron";

// The kubelet's directory, and its newest words.
struct HoldersTest : testing::Test {
  std::string directory = testing::TempDir() + "holdersXXXXXX";
  std::string path;
  SteadyTime now = SteadyTime{} + seconds(1000);
  std::optional<CheckpointFile> file;
  std::optional<MergedHolders> holders;

  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    path = directory + "/kubelet_internal_checkpoint";
    file.emplace(directory);
    holders.emplace(*file, seconds(10));
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(directory, error);
  }
  // `pods`: uid → device id; each through its container c.
  void checkpoint(const std::map<std::string, std::string>& pods) const {
    std::string entries;
    for (const auto& [uid, id] : pods) {
      entries += (entries.empty() ? "" : ",") + std::string(R"({"PodUID":")") + uid +
                 R"(","ContainerName":"c","ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":[")" + id + "\"]}}";
    }
    std::ofstream(path + ".new") << R"({"Data":{"PodDeviceEntries":[)" << entries << "]}}";
    ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  }
  void list(const std::vector<model::Allocation>& pods) {
    now += milliseconds(500);
    holders->set_listed(pods, now);
  }
  bool wants() {
    static_cast<void>(holders->merged(now));
    return holders->wants_fresh_checkpoint(now);
  }
};

const model::Allocation kWorker{"a", "worker", "c", kNeuron, {"1"}};
const model::Allocation kEmptyPod{"a", "empty", "", "", {}};

TEST_F(HoldersTest, AListThatFailsStopsToCountAtOnceAndTheCheckpointSpeaks) {
  list({kWorker});
  checkpoint({{"u2", "2"}});
  auto shown = holders->merged(now);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->listed.size(), 1U);
  EXPECT_EQ(holders->source(), MergedHolders::Source::list_and_checkpoint);
  holders->list_failed();
  shown = holders->merged(now);
  ASSERT_TRUE(shown);
  EXPECT_TRUE(shown->listed.empty());
  EXPECT_EQ(shown->stored.size(), 1U);
  EXPECT_EQ(shown->asked_at, now - kMaxAdmission) << "what is older and not shown has ended";
  EXPECT_EQ(holders->source(), MergedHolders::Source::checkpoint);
  std::filesystem::remove(path);
  EXPECT_FALSE(holders->merged(now)) << "nobody knows: nothing is given back";
  EXPECT_EQ(holders->source(), MergedHolders::Source::nothing);
}

// A kubelet that has just started lists no pod until it has read them; its checkpoint has what they hold.
TEST_F(HoldersTest, AListThatIsNotWholeSaysNothingWithoutACheckpoint) {
  holders.emplace(*file, seconds(10), "agent");
  list({{"kube-system", "agent", "", "", {}}, kWorker});
  EXPECT_TRUE(holders->merged(now));
  list({});
  EXPECT_FALSE(holders->merged(now));
  EXPECT_EQ(holders->source(), MergedHolders::Source::nothing);
  checkpoint({{"u1", "1"}});
  ASSERT_TRUE(holders->merged(now));
  EXPECT_EQ(holders->merged(now)->stored.size(), 1U);
  list({{"kube-system", "agent", "", "", {}}});
  EXPECT_EQ(holders->source(), MergedHolders::Source::list_and_checkpoint);
}

TEST_F(HoldersTest, ClaimsStandApartAndStayUntilListsAgreeThatTheyEnded) {
  const model::Allocation claim{"a", "worker", "c", "neuron.aws.com", {"neuron-device-3"}, "", "chips"};
  list({kWorker, claim});
  checkpoint({{"u1", "1"}});
  auto shown = holders->merged(now);
  ASSERT_TRUE(shown);
  EXPECT_THAT(shown->listed, testing::ElementsAre(kWorker));
  EXPECT_THAT(shown->claims, testing::ElementsAre(claim));
  holders->list_failed();
  EXPECT_EQ(holders->merged(now)->claims.size(), 1U) << "the checkpoint knows of none";
  list({});
  EXPECT_EQ(holders->merged(now)->claims.size(), 1U) << "so a kubelet answers that has just started";
  list({kWorker, claim});
  now += seconds(10);
  list({kWorker});
  EXPECT_EQ(holders->merged(now)->claims.size(), 1U) << "missing for the first time since it was listed";
  now += seconds(5);
  list({kWorker});
  EXPECT_TRUE(holders->merged(now)->claims.empty());
}

TEST_F(HoldersTest, AClaimWithAdminAccessIsNoHolder) {
  model::Allocation monitor{"a", "monitor", "c", "neuron.aws.com", {"neuron-device-3"}, "", "all"};
  monitor.admin_access = true;
  list({kWorker, monitor});
  const auto shown = holders->merged(now);
  ASSERT_TRUE(shown);
  EXPECT_THAT(shown->listed, testing::ElementsAre(kWorker));
  EXPECT_TRUE(shown->claims.empty());
}

// Reads as a file does until it hangs.
class HangingCheckpoint final : public CheckpointSource {
 public:
  [[nodiscard]] holdings::CheckpointVersion version() const override { return hangs ? 0 : content.version; }
  [[nodiscard]] Result<Checkpoint> read() const override {
    if (hangs) return fail(ErrorCode::deadline_exceeded, "reading it has not returned");
    return content;
  }
  Checkpoint content;
  bool hangs = false;
};

TEST_F(HoldersTest, WhileTheCheckpointHangsItCountsAsItWasLast) {
  HangingCheckpoint hanging;
  hanging.content.allocations = {{"", "", "init", kNeuron, {"2"}, "u2"}};
  hanging.content.version = 7;
  hanging.content.written_at = now - seconds(3);
  MergedHolders seen(hanging, seconds(10));
  seen.set_listed({kWorker}, now);
  EXPECT_EQ(seen.merged(now)->stored.size(), 1U);
  ASSERT_NE(seen.written(), nullptr);
  const SteadyTime read_at = now;
  hanging.hangs = true;
  now += seconds(5);
  seen.set_listed({kWorker}, now);
  const auto shown = seen.merged(now + milliseconds(1));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->stored.size(), 1U);
  EXPECT_EQ(shown->listed.size(), 1U);
  EXPECT_EQ(shown->written_at, read_at - seconds(3)) << "by its file";
  EXPECT_EQ(shown->asked_at, read_at) << "what was given since is not over, as the checkpoint may have it";
  EXPECT_EQ(seen.written(), nullptr) << "it may be older than what it is to confirm";
  hanging.hangs = false;
  hanging.content.allocations.clear();
  hanging.content.version = 8;
  EXPECT_TRUE(seen.merged(now)->stored.empty());
  EXPECT_EQ(seen.merged(now)->asked_at, now);
}

// u1 is the pod a/worker, as its container c shows in both; List leaves init containers out.
TEST_F(HoldersTest, APodThatWasListedIsKnownByItsNameInTheCheckpointToo) {
  const auto shown_as = [this] {
    std::vector<std::string> names;
    const auto shown = holders->merged(now);
    for (const auto& one : shown->stored) names.push_back(model::holder_of(one) + " = " + model::holder_name(one));
    return names;
  };
  const auto write = [this](const std::string& entries) {
    std::ofstream(path + ".new") << R"({"Data":{"PodDeviceEntries":[)" << entries << "]}}";
    ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  };
  const auto entry = [](const std::string& uid, const std::string& container, const std::string& id) {
    return R"({"PodUID":")" + uid + R"(","ContainerName":")" + container +
           R"(","ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":[")" + id + "\"]}}";
  };
  write(entry("u1", "init", "2") + "," + entry("u1", "c", "1") + "," + entry("u2", "c", "3"));
  EXPECT_THAT(shown_as(), testing::UnorderedElementsAre("pod u1/init = ", "pod u1/c = ", "pod u2/c = "));
  list({kWorker});
  EXPECT_THAT(shown_as(), testing::UnorderedElementsAre("pod u1/init = a/worker/init", "pod u2/c = "));
  holders->list_failed();
  EXPECT_THAT(shown_as(),
              testing::UnorderedElementsAre("pod u1/init = a/worker/init", "pod u1/c = a/worker/c", "pod u2/c = "));
  list({{"a", "other", "c", kNeuron, {"1"}}});
  EXPECT_THAT(shown_as(), testing::Contains("pod u1/init = a/other/init")) << "the newest List counts";
}

TEST_F(HoldersTest, AFreshCheckpointIsWantedTwiceForWhatListDoesNotShow) {
  checkpoint({{"u1", "1"}, {"u2", "2"}});
  list({kWorker, kEmptyPod});
  EXPECT_TRUE(wants());
  list({kWorker, kEmptyPod});
  EXPECT_TRUE(wants());
  list({kWorker, kEmptyPod});
  EXPECT_FALSE(wants()) << "an init container's, it seems";
}

TEST_F(HoldersTest, ThePodThatLeavesTheListMayBeTheInitContainersAlthoughItHeldNothing) {
  checkpoint({{"u1", "1"}, {"u2", "2"}});
  for (int i = 0; i < 3; ++i) {
    list({kWorker, kEmptyPod});
    static_cast<void>(wants());
  }
  list({kWorker});
  EXPECT_TRUE(wants());
  list({kWorker});
  EXPECT_TRUE(wants()) << "the first may have come too soon";
  list({kWorker});
  EXPECT_FALSE(wants());
  list({{"a", "worker", "", "", {}}});
  EXPECT_TRUE(wants()) << "a container has ended";
}

TEST_F(HoldersTest, WhereNothingTellsAFreshCheckpointIsWantedOncePerInterval) {
  checkpoint({{"u2", "2"}});
  for (int i = 0; i < 3; ++i) {
    list({kWorker});
    static_cast<void>(wants());
  }
  int wanted = 0;
  for (int i = 0; i < 40; ++i) {
    list({kWorker});
    wanted += wants() ? 1 : 0;
  }
  EXPECT_EQ(wanted, 2) << "in 20 s, every 10 s";
  holders->list_failed();
  now += seconds(11);
  EXPECT_TRUE(wants());
  EXPECT_FALSE(wants());
  checkpoint({});
  now += seconds(11);
  EXPECT_FALSE(wants()) << "nobody holds anything";
}

}  // namespace
}  // namespace neuron::plugin
