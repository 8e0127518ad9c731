#include "plugin/dra/claim/claim_record.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/base/fd.h"
#include "test/unit/dra/scratch.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

ClaimRecord claim_of(const std::string& uid, int device = 3) {
  ClaimRecord claim;
  claim.is_completed = true;
  claim.claim_namespace = "default";
  claim.name = "name-of-" + uid;
  claim.uid = uid;
  claim.resource_version = "7";
  claim.requests = {{{"chips", {{{device, {}}, {device + 1, {0, 1}}}, {"rdmap16s25"}}, false, {2, 4}},
                     {{"NEURON_RT_VISIBLE_CORES", "0-2"}}},
                    {{"monitor", {{{9, {}}}, {}}, true, {}}, {}}};
  claim.devices = {{{"chips"}, "n1", "neuron-device-" + std::to_string(device), {"k=a", "k=b"}, "share"}};
  claim.cdi_text = "{\"devices\":\"\xc3\xa9\"}\n";
  claim.node_lnc = 2;
  claim.grace = std::chrono::seconds(3600);
  return claim;
}

class RecordFileTest : public testing::Test {
 protected:
  [[nodiscard]] RecordFile open(const std::string& boot = "boot-1") const {
    return {path(), boot, [this] { return rebuilt_; }};
  }
  [[nodiscard]] std::string path() const { return scratch_.path() + "/claims.json"; }

  Scratch scratch_;
  std::vector<ClaimRecord> rebuilt_;
};

TEST_F(RecordFileTest, AnEntryIsTheSameWhenItIsReadAgain) {
  const ClaimRecord claim = claim_of("u");
  const auto read = parse_record(to_text(claim));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_text(*read), to_text(claim));
  EXPECT_EQ(read->held(), (Hardware{{{3, {}}, {4, {0, 1}}}, {"rdmap16s25"}}));  // nothing of admin access
  EXPECT_EQ(read->requests[0].planned.config, (RequestConfig{2, 4}));
  EXPECT_EQ(read->devices[0].share_id, "share");
  EXPECT_EQ(read->cdi_text, claim.cdi_text);
  EXPECT_EQ(read->node_lnc, 2);
  EXPECT_EQ(read->grace, std::chrono::seconds(3600));
  EXPECT_EQ(parse_record(R"({"uid":"u","state":"completed","nodeLnc":0})")->node_lnc, std::nullopt);
  for (const char* bad :
       {"", "[]", "{}", R"({"uid":7,"state":"completed"})", R"({"uid":"u"})", R"({"uid":"u","state":"restarting"})",
        R"({"uid":"u","state":"completed","requests":[{"request":"r","neuron":[{"device":-1}]}]})",
        R"({"uid":"u","state":"completed","devices":7})"}) {
    EXPECT_FALSE(parse_record(bad)) << bad;
  }
}

TEST_F(RecordFileTest, ChangesAreInTheFileAtOnce) {
  RecordFile file = open();
  ASSERT_TRUE(file.read());
  ASSERT_TRUE(file.put(claim_of("u")));
  ASSERT_TRUE(file.put(claim_of("v", 8)));
  RecordFile other = open();
  ASSERT_TRUE(other.read());
  EXPECT_EQ(other.records().size(), 2U);
  EXPECT_EQ(other.records().at("v")->name, "name-of-v");
  ASSERT_TRUE(other.remove("u"));
  ASSERT_TRUE(other.remove("never there"));
  ASSERT_TRUE(file.read());
  EXPECT_EQ(file.records().size(), 1U);
  EXPECT_EQ(names_in(scratch_.path()), (std::vector<std::string>{"claims.json", "claims.json.spare"}));
  EXPECT_TRUE(json::accept(read_text(path())));
}

// Another version of the agent may add fields, to the file, a claim and anything within; up and down again.
TEST_F(RecordFileTest, Pain5WhatAnotherVersionWroteStays) {
  RecordFile file = open();
  ASSERT_TRUE(file.read());
  ASSERT_TRUE(file.put(claim_of("u")));
  std::string text = read_text(path());
  json newer = json::parse(text);
  newer["colour"] = {{"of", "the file"}};
  newer["claims"][0]["colour"] = "of the claim";
  newer["claims"][0]["requests"][0]["colour"] = 7;
  json unreadable = newer["claims"][0];
  unreadable["uid"] = "w";
  unreadable["state"] = json::array({"in a way that this version does not know"});
  newer["claims"].push_back(unreadable);
  // Written by a version that sorts and spaces otherwise: the checksum is of the bytes.
  newer.erase("checksum");
  std::string body = newer.dump(1).substr(1);
  std::uint64_t sum = 14695981039346656037ULL;
  for (const char byte : body) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(sum));
  write_text(path(), "{\"checksum\":\"" + std::string(digits) + "\"," + body);

  RecordFile older = open();
  ASSERT_TRUE(older.read());
  EXPECT_EQ(older.take_news(), "");
  EXPECT_EQ(older.records().size(), 1U);
  ASSERT_TRUE(older.put(claim_of("v", 8)));
  const json after = json::parse(read_text(path()));
  EXPECT_EQ(after["colour"], newer["colour"]);
  ASSERT_EQ(after["claims"].size(), 3U);
  EXPECT_EQ(after["claims"][0], newer["claims"][0]);
  EXPECT_EQ(after["claims"][2], unreadable);
  ASSERT_TRUE(older.release("w"));  // what cannot be read can be released all the same
  EXPECT_EQ(json::parse(read_text(path()))["claims"].size(), 2U);
}

// Neither a crash loop nor a lost running claim.
TEST_F(RecordFileTest, Pain6ADamagedFileIsSetAsideAndMadeAnewOfTheCdiFiles) {
  for (const std::string& damage :
       {std::string(), std::string("{"), std::string("{\"checksum\":\"0123456789abcdef\",}"), std::string(100, '\0')}) {
    rebuilt_ = {};
    RecordFile file = open();
    ASSERT_TRUE(file.read());
    ASSERT_TRUE(file.put(claim_of("u")));
    write_text(path(), damage);
    rebuilt_ = {claim_of("u")};
    ASSERT_TRUE(file.read());
    EXPECT_EQ(file.records().size(), 1U);
    EXPECT_THAT(file.take_news(), testing::HasSubstr("set aside"));
    EXPECT_EQ(read_text(path() + ".damaged"), damage);
    ASSERT_TRUE(file.put(claim_of("v", 8)));
    RecordFile other = open();
    ASSERT_TRUE(other.read());
    EXPECT_EQ(other.records().size(), 2U);
    std::filesystem::remove(path());
  }
}

TEST_F(RecordFileTest, ATornFileIsSeenWhereverItIsTorn) {
  RecordFile file = open();
  ASSERT_TRUE(file.read());
  ASSERT_TRUE(file.put(claim_of("u")));
  const std::string whole = read_text(path());
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    write_text(path(), whole.substr(0, length));
    RecordFile torn = open();
    ASSERT_TRUE(torn.read());
    EXPECT_TRUE(torn.records().empty()) << length;
    EXPECT_NE(torn.take_news(), "") << length;
  }
}

TEST_F(RecordFileTest, AMissingFileIsMadeOfTheCdiFilesToo) {
  rebuilt_ = {claim_of("u")};
  RecordFile file = open();
  ASSERT_TRUE(file.read());
  EXPECT_EQ(file.records().size(), 1U);
  EXPECT_THAT(file.take_news(), testing::HasSubstr("missing; recovered 1 claims from CDI files"));
}

// What cannot be read must not be taken for what is not there.
TEST_F(RecordFileTest, AFileThatCannotBeReadIsAnErrorAndStays) {
  std::filesystem::create_directories(path());
  RecordFile file = open();
  const auto read = file.read();
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, testing::HasSubstr(path()));
  EXPECT_TRUE(std::filesystem::is_directory(path()));
}

TEST_F(RecordFileTest, AfterABootNothingIsPrepared) {
  RecordFile file = open();
  ASSERT_TRUE(file.read());
  ASSERT_TRUE(file.put(claim_of("u")));
  rebuilt_ = {claim_of("from CDI, which does not outlive a boot")};
  RecordFile later = open("boot-2");
  ASSERT_TRUE(later.read());
  EXPECT_TRUE(later.records().empty());
  EXPECT_THAT(later.take_news(), testing::HasSubstr("1 claims of a previous boot"));
  ASSERT_TRUE(later.release("u"));
  ASSERT_TRUE(later.put(claim_of("v")));
  RecordFile unknown = open("");  // the boot id cannot be read: nothing is dropped
  ASSERT_TRUE(unknown.read());
  EXPECT_EQ(unknown.records().size(), 1U);
  ASSERT_TRUE(unknown.put(claim_of("w", 8)));
  RecordFile known = open("boot-2");
  ASSERT_TRUE(known.read());
  EXPECT_EQ(known.records().size(), 2U);
}

// A Prepare that outlives its call must not bring back what was released meanwhile (docs/reference/dra.md#prepare).
TEST_F(RecordFileTest, ReleasesAreRemembered) {
  RecordFile file = open();
  ASSERT_TRUE(file.read());
  const std::uint64_t begin = file.releases();
  EXPECT_FALSE(file.was_released_since("u", begin));
  ASSERT_TRUE(file.release("u"));
  EXPECT_TRUE(file.was_released_since("u", begin));
  EXPECT_FALSE(file.was_released_since("v", begin));
  EXPECT_FALSE(file.was_released_since("u", file.releases()));  // a Prepare that begins now
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(file.release("other-" + std::to_string(i)));
  RecordFile other = open();
  ASSERT_TRUE(other.read());
  EXPECT_TRUE(other.was_released_since("u", begin));  // forgotten, so nobody can tell
  EXPECT_TRUE(other.was_released_since("v", begin));  // nor here
  EXPECT_FALSE(other.was_released_since("v", other.releases() - 1));
  EXPECT_TRUE(other.was_released_since("v", other.releases() + 1));  // of another file
}

TEST_F(RecordFileTest, AChangeThatCannotBeWrittenIsNone) {
  RecordFile file = open();
  ASSERT_TRUE(file.read());
  ASSERT_TRUE(file.put(claim_of("u")));
  const std::string before = read_text(path());
  std::filesystem::create_directories(path() + ".new");  // in the way, for root too
  const std::uint64_t releases = file.releases();
  EXPECT_FALSE(file.put(claim_of("v")));
  EXPECT_FALSE(file.remove("u"));
  EXPECT_FALSE(file.release("u"));
  EXPECT_EQ(file.records().size(), 1U);
  EXPECT_EQ(file.releases(), releases);
  EXPECT_EQ(read_text(path()), before);
  std::filesystem::remove(path() + ".new");
  ASSERT_TRUE(file.put(claim_of("v", 8)));
  EXPECT_EQ(file.records().size(), 2U);
}

// Else a disk that fills between the two leaves an entry and a CDI file half there. The room is kept in steps, and the
// completion must not need another one.
TEST_F(RecordFileTest, RoomForAnEntryIsRoomForItsCompletion) {
  for (std::size_t bytes = 0; bytes < 17'000; bytes += 50) {
    ClaimRecord claim = claim_of("u");
    claim.cdi_text.assign(bytes, 'x');
    claim.is_completed = false;
    std::filesystem::remove(path());
    std::filesystem::remove(path() + ".spare");
    RecordFile file = open();
    ASSERT_TRUE(file.read());
    ASSERT_TRUE(file.put(claim));
    const auto kept = std::filesystem::file_size(path() + ".spare");
    claim.is_completed = true;
    ASSERT_TRUE(file.put(claim));
    EXPECT_EQ(std::filesystem::file_size(path() + ".spare"), kept) << bytes;
  }
}

TEST(LockedRecordFile, OneAtATimeHasTheFile) {
  const Scratch scratch;
  const std::string directory = scratch.path() + "/plugins/neuron.aws.com";
  LockedRecordFile one({directory, "b"}, [] { return std::vector<ClaimRecord>(); });
  LockedRecordFile two({directory, "b"}, [] { return std::vector<ClaimRecord>(); });  // another instance
  const auto add = [](LockedRecordFile& to, const std::string& prefix) {
    for (int i = 0; i < 50; ++i) {
      const auto done = to.edit([&](RecordFile& file) { return file.put(claim_of(prefix + std::to_string(i))); });
      EXPECT_TRUE(done) << done.error().message;
    }
  };
  {
    const std::jthread first([&] { add(one, "a"); });
    const std::jthread second([&] { add(two, "b"); });
    const std::jthread third([&] { add(two, "c"); });
  }
  std::size_t count = 0;
  ASSERT_TRUE(one.edit([&](RecordFile& file) {
    count = file.records().size();
    return Result<void>();
  }));
  EXPECT_EQ(count, 150U);
}

TEST(LockedRecordFile, ALockThatIsNotLetGoIsAnErrorThatSaysWhose) {
  const Scratch scratch;
  const Fd held(::open((scratch.path() + "/claims.lock").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  LockedRecordFile claims({scratch.path(), "b", std::chrono::milliseconds(20)},
                          [] { return std::vector<ClaimRecord>(); });
  const auto done = claims.edit([](RecordFile&) { return Result<void>(); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  EXPECT_THAT(done.error().message, testing::HasSubstr("another instance of the driver holds " + scratch.path()));
  ASSERT_EQ(::flock(held.get(), LOCK_UN), 0);
  EXPECT_TRUE(claims.edit([](RecordFile&) { return Result<void>(); }));
}

// The kubelet's calls have a deadline, and many may wait at once.
TEST(LockedRecordFile, PatienceIsOfTheCallWhoeverWaitsBeforeIt) {
  constexpr std::chrono::milliseconds kPatience{300};
  const Scratch scratch;
  const Fd held(::open((scratch.path() + "/claims.lock").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  LockedRecordFile claims({scratch.path(), "b", kPatience}, [] { return std::vector<ClaimRecord>(); });
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> calls;
    for (int i = 0; i < 10; ++i) {
      calls.emplace_back([&] { EXPECT_FALSE(claims.edit([](RecordFile&) { return Result<void>(); })); });
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5 * kPatience);  // not 10
}

// Slow calls of this instance are not blamed on another one.
TEST(LockedRecordFile, ALockThatOwnCallsHadSaysSo) {
  constexpr std::chrono::milliseconds kPatience{20};
  const Scratch scratch;
  const std::string path = scratch.path() + "/claims.lock";
  LockedRecordFile claims({scratch.path(), "b", kPatience}, [] { return std::vector<ClaimRecord>(); });
  std::promise<void> slow_began;
  std::atomic<bool> other_calls{false};
  Fd other;
  std::jthread slow([&] {
    EXPECT_TRUE(claims.edit([&](RecordFile&) {
      slow_began.set_value();
      other_calls.wait(false);
      std::promise<void> never;
      never.get_future().wait_for(25 * kPatience);  // a slow disk
      std::filesystem::remove(path);
      other = Fd(::open(path.c_str(), O_RDWR | O_CREAT, 0600));  // and another instance is the next
      EXPECT_EQ(::flock(other.get(), LOCK_EX), 0);
      return Result<void>();
    }));
  });
  slow_began.get_future().wait();
  other_calls = true;
  other_calls.notify_one();
  const auto done = claims.edit([](RecordFile&) { return Result<void>(); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  EXPECT_THAT(done.error().message, testing::HasSubstr("other calls of this instance held " + path));
}

// Read and write hang in a file system without an answer, and with them the one call.
TEST(LockedRecordFile, ACallThatHangsHoldsUpOthersForSoLongOnly) {
  const Scratch scratch;
  LockedRecordFile claims(
      {scratch.path() + "/claims", "boot-1", std::chrono::milliseconds(100), std::chrono::milliseconds(1000)},
      [] { return std::vector<ClaimRecord>(); });
  std::promise<void> begun, goes_on;
  auto hanging = std::async(std::launch::async, [&] {
    return claims.edit([&](RecordFile&) -> Result<void> {
      begun.set_value();
      goes_on.get_future().wait();
      return {};
    });
  });
  begun.get_future().wait();
  const auto nothing = [](RecordFile&) -> Result<void> { return {}; };
  for (int i = 0; i < 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto meanwhile = claims.edit(nothing);
    ASSERT_FALSE(meanwhile);
    EXPECT_EQ(meanwhile.error().code, ErrorCode::unavailable);
    EXPECT_THAT(meanwhile.error().message,
                testing::AllOf(
                    testing::HasSubstr(scratch.path() + "/claims/claims.json has not returned for more than 1000 ms"),
                    testing::HasSubstr("retried automatically")));
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(i == 0 || took < std::chrono::milliseconds(800)) << "at once by now";
  }
  goes_on.set_value();
  ASSERT_EQ(hanging.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_TRUE(hanging.get());
  EXPECT_TRUE(claims.edit(nothing));
}

TEST(LockedRecordFile, ADirectoryThatWasEmptiedIsMadeAnew) {
  const Scratch scratch;
  LockedRecordFile claims({scratch.path() + "/d", "b"}, [] { return std::vector<ClaimRecord>(); });
  const auto put = [&](const char* uid) {
    return claims.edit([&](RecordFile& file) { return file.put(claim_of(uid)); });
  };
  ASSERT_TRUE(put("u"));
  std::filesystem::remove_all(scratch.path() + "/d");
  ASSERT_TRUE(put("v"));
  EXPECT_EQ(names_in(scratch.path() + "/d"),
            (std::vector<std::string>{"claims.json", "claims.json.spare", "claims.lock"}));
}

}  // namespace
}  // namespace neuron::plugin::dra
