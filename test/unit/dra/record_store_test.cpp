#include "plugin/dra/claim/claim_record.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <semaphore>

#include "agent/base/workers.h"
#include "plugin/dra/claim/claim_upkeep.h"
#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RecordStoreTest : public ClaimsTest {
 protected:
  void SetUp() override {
    ClaimsTest::SetUp();
    put_claim("a", {{"chips", "neuron-device-2"}, {"nics", "efa-" + node_->efa(0).name}});
    put_claim("b", {{"chips", "neuron-device-3-core-1"}});
    ASSERT_EQ(prepare("a").error + prepare("b").error, "");
    a_ = read_text(cdi_file("uid-a"));
  }
  [[nodiscard]] std::string repair() {
    const auto repaired = agent_->store.repair();
    return repaired ? "" : repaired.error().message;
  }
  [[nodiscard]] std::string checkpoint() const { return directory() + "/claims.json"; }
  // As after an update, when the other version wrote the first claim in its own way.
  void restart_with(const std::function<void(json&)>& change) {
    json entry = json::parse(read_text(checkpoint()));
    change(entry["claims"][0]);
    entry.erase("checksum");
    const std::string text = entry.dump().substr(1);
    std::uint64_t sum = 14695981039346656037ULL;
    for (const char byte : text) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(sum));
    write_text(checkpoint(), "{\"checksum\":\"" + std::string(digits) + "\"," + text);
    restart();
  }

  std::string a_;  // its CDI file
};

// Files of prepared claims are there after a start, whatever happened to the directory.
TEST_F(RecordStoreTest, Pain2FilesThatAreGoneAreWrittenAgain) {
  std::filesystem::remove_all(cdi());
  restart();
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(read_text(cdi_file("uid-a")), a_);
  EXPECT_EQ(names_in(cdi()).size(), 2U);
  write_text(cdi_file("uid-a"), "{");
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(read_text(cdi_file("uid-a")), a_);
}

// The record says "started" from then on; the slices must not keep the device as held.
TEST_F(RecordStoreTest, AClaimWhoseCdiFileCannotBeWrittenHoldsNothing) {
  std::filesystem::rename(cdi(), scratch_.path() + "/aside");
  write_text(cdi(), "no directory");
  put_claim("c", {{"chips", "neuron-device-5"}});
  EXPECT_EQ(prepare("c").reason, "claim_files");
  EXPECT_TRUE(json::parse(read_text(checkpoint())).dump().find("uid-c") != std::string::npos);
  EXPECT_THAT(agent_->store.held_devices(),
              ElementsAre("efa-" + node_->efa(0).name, "neuron-device-2", "neuron-device-3-core-1"));
  std::filesystem::remove(cdi());
  std::filesystem::rename(scratch_.path() + "/aside", cdi());
  EXPECT_EQ(prepare("c").error, "");
  EXPECT_THAT(agent_->store.held_devices(), testing::Contains("neuron-device-5"));
}

// claims.json is gone, and the CDI directory cannot be listed, or one of its files cannot be read.
TEST_F(RecordStoreTest, CdiFilesThatCannotBeReadAreNoAbsence) {
  const std::string aside = scratch_.path() + "/aside";
  for (const std::string& place : {cdi(), cdi_file("uid-a")}) {
    std::filesystem::remove(checkpoint());
    std::filesystem::rename(place, aside);
    if (place == cdi()) {
      write_text(place, "no directory");
    } else {
      sockaddr_un address{};  // fails with ENXIO, as a broken disk would with EIO
      address.sun_family = AF_UNIX;
      ASSERT_LT(place.size(), sizeof address.sun_path);
      place.copy(address.sun_path, place.size());
      const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    restart();
    const auto view = agent_->store.view();
    ASSERT_FALSE(view) << place;
    EXPECT_THAT(view.error().message, HasSubstr(place));
    EXPECT_NE(repair(), "");
    EXPECT_FALSE(std::filesystem::exists(checkpoint())) << "nothing is written that has forgotten them";
    put_claim("thief", {{"chips", "neuron-device-2"}});
    EXPECT_EQ(prepare("thief").reason, "claim_files");
    std::filesystem::remove(place);
    std::filesystem::rename(aside, place);
    EXPECT_EQ(repair(), "");
    EXPECT_THAT(agent_->store.held_devices(), testing::SizeIs(3));
    EXPECT_EQ(prepare("thief").reason, "held_by_claim");
  }
}

TEST_F(RecordStoreTest, EntriesOfAnotherVersionCountOnceTheirCdiFilesCanBeRead) {
  const std::string aside = scratch_.path() + "/aside";
  std::filesystem::rename(cdi(), aside);
  write_text(cdi(), "no directory");
  restart_with([](json& entry) { entry["state"] = "of a later version"; });
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(agent_->store.view()) << "also when it is read again";
  std::filesystem::remove(cdi());
  std::filesystem::rename(aside, cdi());
  ASSERT_TRUE(agent_->store.view());
  put_claim("thief", {{"chips", "neuron-device-2"}});
  EXPECT_EQ(prepare("thief").reason, "held_by_claim");
}

// Removed on the host and made anew there, where the mount of the driver's container does not show it.
TEST_F(RecordStoreTest, Pain2ADirectoryThatIsDeadBehindItsMountIsReported) {
  std::filesystem::create_directories(scratch_.path() + "/mounted");
  const Fd held(::open((scratch_.path() + "/mounted").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int reported = 0;
  RecordStore store(
      {kDriver, directory(), "/proc/self/fd/" + std::to_string(held.get()), "boot-1", [&reported] { ++reported; }},
      [this] { return node_; });
  ASSERT_TRUE(store.repair());
  EXPECT_EQ(names_in(scratch_.path() + "/mounted").size(), 2U);
  EXPECT_EQ(reported, 0);
  std::filesystem::remove_all(scratch_.path() + "/mounted");
  const auto written = store.write_again("uid-a");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("was removed on the host and the driver's mount of it is stale"));
  EXPECT_EQ(reported, 1);
  EXPECT_FALSE(store.repair());
  EXPECT_GE(reported, 2);
  EXPECT_TRUE(store.release("uid-a"));  // there is nothing left to remove
}

class CdiNodesTest : public ClaimsTest {
 protected:
  void SetUp() override {
    ClaimsTest::SetUp();
    put_claim("nics", {{"one", "efa-" + name(0)}, {"chips", "neuron-device-5"}});
    ASSERT_EQ(prepare("nics").error, "");
    prepared_ = read_text(cdi_file("uid-nics"));
    ASSERT_EQ(path(), node_path(0));
  }
  [[nodiscard]] std::string name(std::size_t efa) const { return node_->snapshot().host.efas[efa].name; }
  [[nodiscard]] std::string node_path(std::size_t efa) const {
    return "/dev/infiniband/" + *node_->snapshot().host.efas[efa].uverbs;
  }
  // Of the claim's interface in its file; "" when it is not there.
  [[nodiscard]] std::string path() const {
    const json spec = cdi_of("uid-nics");
    for (const json& device : spec["devices"]) {
      if (device["name"] == "uid-nics-efa-" + name(0)) return device["containerEdits"]["deviceNodes"][0]["path"];
    }
    return "";
  }
  [[nodiscard]] std::string repair() {
    const auto repaired = agent_->store.repair();
    return repaired ? "" : repaired.error().message;
  }
  std::string prepared_;
};

// A driver that is bound anew may number its verbs nodes otherwise.
TEST_F(CdiNodesTest, FollowTheInterfaceWhenNumbersAreSwapped) {
  change_node([](model::HostScan& host) { std::swap(host.efas[0].uverbs, host.efas[1].uverbs); });
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(path(), node_path(0));
  restart();
  EXPECT_EQ(prepare("nics").error, "");  // as a kubelet that was started again asks
  EXPECT_EQ(path(), node_path(0));
  change_node([](model::HostScan& host) { std::swap(host.efas[0].uverbs, host.efas[1].uverbs); });
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(read_text(cdi_file("uid-nics")), prepared_);
}

TEST_F(CdiNodesTest, FollowAsSoonAsAScanShowsIt) {
  const SystemClock clock;
  Workers workers;
  std::counting_semaphore<> repairs(0);  // that have ended
  ClaimUpkeep upkeep(agent_->store, agent_->sweep, {cdi(), directory()},
                     {[&workers](std::function<void()> job) { workers.run(std::move(job)); },
                      [](const std::function<void()>&) {}, [&repairs] { repairs.release(); }, clock});
  const std::jthread keeping([&](const std::stop_token& stop) { upkeep.run(stop); });
  ASSERT_TRUE(upkeep.await_first());
  change_node([](model::HostScan& host) { std::swap(host.efas[0].uverbs, host.efas[1].uverbs); });
  const std::string now = node_path(0);
  upkeep.node_changed();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (path() != now && repairs.try_acquire_until(until)) {
  }
  EXPECT_EQ(path(), now);
}

// The record has the numbers of Prepare, the file may have newer ones.
TEST_F(CdiNodesTest, StayBeforeTheFirstScan) {
  change_node([](model::HostScan& host) { std::swap(host.efas[0].uverbs, host.efas[1].uverbs); });
  EXPECT_EQ(repair(), "");
  const std::string newest = read_text(cdi_file("uid-nics"));
  const auto scanned = std::exchange(node_, nullptr);
  restart();
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(read_text(cdi_file("uid-nics")), newest);
  std::filesystem::remove(cdi_file("uid-nics"));
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(read_text(cdi_file("uid-nics")), prepared_);
  node_ = scanned;
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(read_text(cdi_file("uid-nics")), newest);
}

// Away: a container that is started again fails, and does not get the interface that has the number now.
TEST_F(CdiNodesTest, OfAnInterfaceThatIsAwayAreNotThoseOfAnother) {
  change_node([](model::HostScan& host) { host.efas[0].uverbs.reset(); });
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(read_text(cdi_file("uid-nics")), prepared_) << "the number is free: its node is not there";
  const std::string old_number = prepared_.find("uverbs") != std::string::npos ? path().substr(16) : "";
  change_node([&](model::HostScan& host) { host.efas[1].uverbs = old_number; });
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(path(), "");
  EXPECT_EQ(cdi_of("uid-nics")["devices"].size(), 2U);  // neuron5 and the variables
  change_node([](model::HostScan& host) { host.efas[0].uverbs = "uverbs40"; });
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(path(), "/dev/infiniband/uverbs40");
}

TEST_F(RecordStoreTest, FilesOfNoClaimAreRemovedAndThoseOfOthersStay) {
  write_text(cdi_file("uid-gone"), "{}");
  write_text(cdi() + "/k8s.neuron.aws.com-claim_half.json.new", "{");
  write_text(cdi() + "/k8s.gpu.example.com-claim_uid-gone.json", "{}");
  write_text(cdi() + "/aws.amazon.com-neuron.json", "{}");
  EXPECT_EQ(repair(), "");
  EXPECT_THAT(names_in(cdi()),
              ElementsAre("aws.amazon.com-neuron.json", "k8s.gpu.example.com-claim_uid-gone.json",
                          "k8s.neuron.aws.com-claim_uid-a.json", "k8s.neuron.aws.com-claim_uid-b.json"));
}

// After a boot no claim is in use, and releasing the old ones is no error.
TEST_F(RecordStoreTest, Pain1ABootEndsEverything) {
  restart("boot-2");
  EXPECT_EQ(repair(), "");
  EXPECT_THAT(names_in(cdi()), IsEmpty());
  EXPECT_EQ(prepared(), 0U);
  put_claim("c", {{"chips", "neuron-device-2"}});
  EXPECT_EQ(prepare("c").error, "");
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_EQ(unprepare("c"), "");
  EXPECT_EQ(prepare("a").error, "");  // its pod is started again
}

// A file that is damaged or gone is made of the CDI files; what runs is still held, and can be released.
TEST_F(RecordStoreTest, Pain6WithoutItsFileWhatIsPreparedIsHeldAllTheSame) {
  for (const bool is_removed : {false, true}) {
    if (is_removed) {
      std::filesystem::remove(checkpoint());
    } else {
      write_text(checkpoint(), read_text(checkpoint()).substr(0, 200));
    }
    restart();
    EXPECT_EQ(repair(), "");
    EXPECT_EQ(prepared(), 2U);
    EXPECT_EQ(read_text(cdi_file("uid-a")), a_);
    EXPECT_THAT(agent_->store.held_devices(),
                ElementsAre("efa-" + node_->efa(0).name, "neuron-device-2", "neuron-device-3-core-1"));
    put_claim("c", {{"chips", "neuron-device-2"}});
    EXPECT_THAT(prepare("c").error, HasSubstr("neuron2 is held by the claim with uid uid-a"));
    put_claim("d", {{"chips", "neuron-device-3"}});
    EXPECT_EQ(prepare("d").reason, "held_by_claim");
    put_claim("e", {{"nics", "efa-" + node_->efa(0).name}});
    EXPECT_EQ(prepare("e").reason, "held_by_claim");
    put_claim("f", {{"chips", "neuron-device-3-core-0"}});  // beside b: cores are known as cores
    EXPECT_EQ(prepare("f").error, "");
    EXPECT_EQ(unprepare("f"), "");
  }
  // Its container runs, and the kubelet asks again: its own memory does not keep it waiting, and it has a name again.
  leftovers_.set(2, 0, 4096);
  EXPECT_EQ(prepare("a").error, "");
  EXPECT_EQ(read_text(cdi_file("uid-a")), a_);
  put_claim("c", {{"chips", "neuron-device-2"}});
  EXPECT_EQ(prepare("c").reason, "held_by_claim");
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_EQ(unprepare("b"), "");
  EXPECT_THAT(names_in(cdi()), IsEmpty());
}

// What a CDI file does not tell has to be asked for.
TEST_F(RecordStoreTest, AClaimThatWasRebuiltNeedsTheServer) {
  std::filesystem::remove(checkpoint());
  restart();
  api_.fail_next(1, make_error(ErrorCode::unavailable, "no route"));
  EXPECT_EQ(prepare("a").reason, "api_server");
  const PrepareAnswer answer = prepare("a");
  EXPECT_EQ(answer.error, "");
  ASSERT_EQ(answer.devices.size(), 2U);
  EXPECT_THAT(answer.devices[0].requests, ElementsAre("chips"));
}

// Before the first scan a core of a CDI file is its whole device, and an interface is known by its label only.
TEST_F(RecordStoreTest, WhatWasRebuiltBeforeTheFirstScanIsCoresAndInterfacesAfterIt) {
  change_node([](model::HostScan& host) { host.efas[0].name = "efa_0"; });
  const std::string efa = "efa-efa-0";
  put_claim("nic", {{"nics", efa}});
  ASSERT_EQ(prepare("nic").error, "");
  std::filesystem::remove(checkpoint());
  const auto node = std::exchange(node_, nullptr);
  restart();
  EXPECT_EQ(repair(), "");
  EXPECT_TRUE(agent_->store.is_held({{{3, {0}}}, {}}));
  node_ = node;
  put_claim("c", {{"chips", "neuron-device-3-core-0"}});  // beside b
  EXPECT_EQ(prepare("c").error, "");
  put_claim("d", {{"chips", "neuron-device-3-core-1"}});
  EXPECT_EQ(prepare("d").reason, "held_by_claim");
  put_claim("e", {{"nics", efa}});
  EXPECT_EQ(prepare("e").reason, "held_by_claim");
  EXPECT_EQ(unprepare("c"), "");
  EXPECT_FALSE(agent_->store.is_held({{{3, {0}}}, {}}));
}

// What cannot be understood does not stop the rest.
TEST_F(RecordStoreTest, ForeignFilesAreNoClaims) {
  std::filesystem::remove(checkpoint());
  write_text(cdi_file("odd"), "[1]");
  write_text(cdi_file("deep"), std::string(100000, '['));
  write_text(cdi_file("strange"), R"({"kind":7,"devices":[{"name":"strange-"},{"name":5},7,{"name":"other-x"}]})");
  write_text(cdi_file("bad name!"), "{}");
  std::filesystem::create_directories(cdi_file("folder"));
  restart();
  EXPECT_NE(repair(), "");  // the folder, which is no file of ours to remove
  EXPECT_EQ(prepared(), 3U);
  EXPECT_EQ(unprepare("a"), "");
}

// What another version wrote of a claim and this one cannot read keeps its CDI file, and its hardware.
TEST_F(RecordStoreTest, Pain5AnEntryThatIsNotUnderstoodHoldsWhatItsFileTells) {
  for (const json& state : {json(7), json("restarting")}) {
    restart_with([&](json& entry) { entry["state"] = state; });
    EXPECT_EQ(repair(), "");
    EXPECT_EQ(prepared(), 2U);
    EXPECT_EQ(names_in(cdi()).size(), 2U);
    put_claim("c", {{"chips", "neuron-device-2"}});
    EXPECT_EQ(prepare("c").reason, "held_by_claim");
    EXPECT_THAT(agent_->store.held_devices(), testing::Contains("neuron-device-2"));
    put_claim("d", {{"chips", "neuron-device-5"}});
    EXPECT_EQ(prepare("d").error, "");
    EXPECT_EQ(unprepare("d"), "");
    ASSERT_TRUE(agent_->store.set_name("uid-a", "default", "a"));
    EXPECT_EQ(json::parse(read_text(checkpoint()))["claims"][0]["state"], state) << "as the other version wrote it";
    EXPECT_EQ(prepare("a").error, "");  // anew
    EXPECT_EQ(json::parse(read_text(checkpoint()))["claims"][0]["state"], "completed");
    EXPECT_EQ(prepared(), 2U);
  }
  restart_with([&](json& entry) { entry["state"] = "restarting"; });
  EXPECT_EQ(unprepare("a"), "");
  put_claim("c", {{"chips", "neuron-device-2"}});
  EXPECT_EQ(prepare("c").error, "");
}

// A claim that was prepared and is prepared anew: its pod may run.
TEST_F(RecordStoreTest, APrepareAnewThatFailsLeavesWhatWasPrepared) {
  put_claim("a", {{"chips", "neuron-device-5"}});  // another allocation
  std::filesystem::remove_all(cdi());
  write_text(cdi(), "in the way");
  EXPECT_THAT(prepare("a").error, HasSubstr(cdi()));
  EXPECT_TRUE(agent_->store.is_held({{{2, {}}}, {}}));
  std::filesystem::remove(cdi());
  EXPECT_EQ(repair(), "");
  EXPECT_EQ(prepared(), 2U);
  EXPECT_EQ(read_text(cdi_file("uid-a")), a_);
  EXPECT_EQ(prepare("a").error, "");
  EXPECT_TRUE(agent_->store.is_held({{{5, {}}}, {}}));
  EXPECT_FALSE(agent_->store.is_held({{{2, {}}}, {}}));
}

}  // namespace
}  // namespace neuron::plugin::dra
