#include "plugin/kubelet/checkpoint.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "test/fakes/sanitized.h"

namespace neuron::plugin {
namespace {

constexpr const char* kSample = R"({"Data":{"PodDeviceEntries":[
  {"PodUID":"u1","ContainerName":"main","ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":["3","1"],"1":["3"]},"AllocResp":"eA=="},
  {"PodUID":"u2","ContainerName":"c","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["x"]},"AllocResp":""},
  {"PodUID":"u3","ContainerName":"c","ResourceName":"aws.amazon.com/neuroncore","DeviceIDs":null}],
  "RegisteredDevices":{"aws.amazon.com/neuron":["0"]}},"Checksum":1})";

TEST(Checkpoint, ShowsOurResourcesOnceEach) {
  const auto checkpoint = parse_checkpoint(kSample);
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->allocations,
            (std::vector<model::Allocation>{{"", "", "main", "aws.amazon.com/neuron", {"1", "3"}, "u1"}}));
}

TEST(Checkpoint, NobodyHoldingAnythingIsNoError) {
  EXPECT_TRUE(parse_checkpoint(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":0})")
                  ->allocations.empty());
}

TEST(Checkpoint, TornOrForeignTextIsAnError) {
  const std::string sample = kSample;
  for (const std::string& bad : {std::string(), std::string("{"), std::string("[]"), std::string("{\"Data\":1}"),
                                 sample.substr(0, sample.size() / 2), std::string(100000, '[')}) {
    const auto checkpoint = parse_checkpoint(bad);
    ASSERT_FALSE(checkpoint);
    EXPECT_EQ(checkpoint.error().code, ErrorCode::data_corrupt);
  }
  EXPECT_TRUE(
      parse_checkpoint(R"({"Data":{"PodDeviceEntries":[1,"a",{"PodUID":3,"DeviceIDs":[[]]}]}})")->allocations.empty());
}

std::string entry(const std::string& ids, const std::string& answer) {
  return R"({"PodUID":"u","ContainerName":"c","ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":[)" + ids +
         R"(]},"AllocResp":")" + answer + R"("})";
}

std::string checkpoint_of(const std::string& entries) {
  return R"({"Data":{"RegisteredDevices":{"Data":["1"]},"PodDeviceEntries":[)" + entries + "]}}";
}

TEST(Checkpoint, TheOrderOfKeysAndWhatIsInsideOthersDoNotMatter) {
  const auto checkpoint = parse_checkpoint(
      R"({"Checksum":1,"PodDeviceEntries":[{"ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":["7"]}}],"Data":{
        "RegisteredDevices":{"PodDeviceEntries":[{"DeviceIDs":{"0":["8"]}}]},"PodDeviceEntries":[
        {"DeviceIDs":{"0":["1",["9"],{"DeviceIDs":{"0":["9"]}}],"1":[2,"3"]},"AllocResp":{"PodUID":"no"},
         "ResourceName":"aws.amazon.com/neuron","ContainerName":"c","PodUID":"u"},
        [{"ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":["9"]}}]]}})");
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->allocations,
            (std::vector<model::Allocation>{{"", "", "c", "aws.amazon.com/neuron", {"1", "3"}, "u"}}));
  EXPECT_TRUE(checkpoint->listed_devices.empty());
}

// A line of /proc/self/status, in bytes.
std::size_t status_bytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::size_t kibibytes = 0;
    if (word == name + ":" && file >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

TEST(Checkpoint, WhatNobodyNeedsIsNotKeptWhileALargeOneIsRead) {
  if (fakes::kSanitized) GTEST_SKIP() << "most of the memory is the sanitizer's";
  mallopt(M_TRIM_THRESHOLD, 128 << 10);  // as in the agent
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  // glibc raised it in earlier tests: large blocks would stay on the heap
  std::string entries = entry("\"1\"", std::string(1000, 'A'));
  for (int i = 0; i < 20000; ++i) entries += "," + entry("\"2\"", std::string(i % 1000, 'A'));
  const std::string text = checkpoint_of(entries);
  if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush)) GTEST_SKIP() << "the peak cannot be reset";
  const std::size_t before = status_bytes("VmRSS");
  ASSERT_GT(before, 0U);
  EXPECT_EQ(parse_checkpoint(text)->allocations.size(), 20001U);
  const std::size_t peak = status_bytes("VmHWM");
  EXPECT_LT(peak - std::min(before, peak), text.size()) << "of " << text.size();
}

TEST(Checkpoint, AnAbsurdNumberOfDevicesIsAnError) {
  std::string ids;
  for (int i = 0; i < 20000; ++i) ids += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\"";
  std::string entries = entry(ids, "");
  EXPECT_TRUE(parse_checkpoint(checkpoint_of(entries)));
  for (int i = 0; i < 4; ++i) entries += "," + entry(ids, "");
  const auto checkpoint = parse_checkpoint(checkpoint_of(entries));
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().code, ErrorCode::data_corrupt);
}

// A ContainerAllocateResponse with NEURON_RT_VISIBLE_CORES, /dev/neuron7 and /dev/neuron8, as the kubelet records it.
constexpr const char* kAnswer =
    "Ch4KF05FVVJPTl9SVF9WSVNJQkxFX0NPUkVTEgMwLTMaJAoML2Rldi9uZXVyb243EhAvc2ltL2Rldi9u"
    "ZXVyb243GgJydxokCgwvZGV2L25ldXJvbjgSEC9zaW0vZGV2L25ldXJvbjgaAnJ3";

std::string document(const std::string& entries, const std::string& registered) {
  return R"({"Data":{"PodDeviceEntries":[)" + entries + R"(],"RegisteredDevices":{)" + registered +
         R"(}},"Checksum":1})";
}

std::string entry_of(const std::string& resource, const std::string& ids, const std::string& answer) {
  return R"({"PodUID":"u","ContainerName":"c","AllocResp":")" + answer + R"(","ResourceName":")" + resource +
         R"(","DeviceIDs":)" + ids + "}";
}

TEST(Checkpoint, TellsInWhichNumberingCoreIdsWereGiven) {
  const auto checkpoint =
      parse_checkpoint(document(entry_of("aws.amazon.com/neuroncore", R"({"0":["33","32"],"1":["31","32"]})", kAnswer) +
                                    "," + entry_of("aws.amazon.com/neuron", R"({"0":["3"]})", kAnswer) + "," +
                                    entry_of("aws.amazon.com/neuroncore", R"({"-1":["2"]})", "%%") + "," +
                                    R"({"ResourceName":"aws.amazon.com/neuroncore","DeviceIDs":{"0":["4"]}})",
                                R"("aws.amazon.com/neuroncore":["0","63","9"],"aws.amazon.com/neuron":["99"])"));
  ASSERT_TRUE(checkpoint);
  const core::NumberingEvidence& evidence = checkpoint->numbering;
  ASSERT_EQ(evidence.given.size(), 3U);
  EXPECT_EQ(evidence.given[0].cores, (std::vector<int>{31, 32, 33}));
  EXPECT_EQ(evidence.given[0].devices, (std::vector<int>{7, 8}));
  EXPECT_EQ(evidence.given[1].cores, (std::vector<int>{2}));
  EXPECT_TRUE(evidence.given[1].devices.empty()) << "an answer that makes no sense names no device";
  EXPECT_TRUE(evidence.given[2].devices.empty()) << "the answer of another entry is not this one's";
  EXPECT_EQ(evidence.highest_listed, 63);
}

TEST(Checkpoint, TellsWhichUnitsWereListed) {
  const auto checkpoint = parse_checkpoint(
      document(entry_of("aws.amazon.com/neuron", R"({"0":["7"]})", ""),
               R"("aws.amazon.com/neuron":["10","4"],"aws.amazon.com/neurondevice":["4","5"],)"
               R"("aws.amazon.com/neuroncore":["1","0"],"vpc.amazonaws.com/efa":["8"],"x":["9",["6"],{"a":["6"]}])"));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->listed_devices, (std::vector<int>{4, 5, 10}));
  EXPECT_EQ(checkpoint->listed_cores, (std::vector<int>{0, 1}));
}

TEST(Checkpoint, OddNumbersAndListsAreLeftOut) {
  const std::string cores = "aws.amazon.com/neuroncore";
  for (const std::string& odd :
       {document("null,7,{}", ""), document(entry_of(cores, "[[]]", ""), "\"a\":{}"),
        document(entry_of(cores, R"({"0":["x","-1","65536","99999999999",7]})", ""),
                 R"("aws.amazon.com/neuroncore":{"0":[]})"),
        document("", R"("aws.amazon.com/neuron":{"0":1},"aws.amazon.com/neuroncore":{"0":["1"]})"),
        document("", R"("aws.amazon.com/neuron":[0,"-1","x","65536",null,["1"]])"),
        std::string(R"({"Data":{"RegisteredDevices":[]}})"),
        std::string(R"({"Data":{},"RegisteredDevices":{"aws.amazon.com/neuron":["1"]}})"),
        std::string(R"({"Data":{"RegisteredDevices":[["1"]],"a":{"aws.amazon.com/neuron":["1"]}}})")}) {
    const auto checkpoint = parse_checkpoint(odd);
    ASSERT_TRUE(checkpoint) << odd;
    EXPECT_TRUE(checkpoint->numbering.given.empty()) << odd;
    EXPECT_FALSE(checkpoint->numbering.highest_listed) << odd;
    EXPECT_TRUE(checkpoint->listed_devices.empty()) << odd;
    EXPECT_TRUE(checkpoint->listed_cores.empty()) << odd;
  }
}

// "\x1a\x18 /dev/infiniband/uverbs0" in base64, as in a recorded ContainerAllocateResponse.
constexpr const char* kWithVerbs = "GhgKFi9kZXYvaW5maW5pYmFuZC91dmVyYnMw";

TEST(Checkpoint, NamesContainersWithVerbsNodesFromOtherResources) {
  const auto takers = [](const std::string& resource, const std::string& answer) {
    return parse_checkpoint(R"({"Data":{"PodDeviceEntries":[{"PodUID":"1-2","ContainerName":"main","ResourceName":")" +
                            resource + R"(","DeviceIDs":{"-1":["a"]},"AllocResp":")" + answer +
                            R"("}],"RegisteredDevices":{}},"Checksum":1})")
        ->verbs_takers;
  };
  EXPECT_EQ(takers("nvidia.com/gpu", kWithVerbs), std::vector<std::string>{"nvidia.com/gpu pod 1-2/main"});
  EXPECT_TRUE(takers("vpc.amazonaws.com/efa", kWithVerbs).empty());
  EXPECT_TRUE(takers("aws.amazon.com/neuron", kWithVerbs).empty());
  EXPECT_TRUE(takers("nvidia.com/gpu", "L2Rldi9udmlkaWEw").empty());
  EXPECT_TRUE(parse_checkpoint(R"({"Data":{"PodDeviceEntries":[null,1,{}]}})")->verbs_takers.empty());
}

TEST(Checkpoint, TheVersionChangesWithEveryRename) {
  std::string directory = testing::TempDir() + "checkpointXXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/kubelet_internal_checkpoint";
  EXPECT_EQ(checkpoint_version(path), 0U);
  EXPECT_EQ(read_checkpoint(path).error().code, ErrorCode::not_found);
  const auto write = [&] {
    std::ofstream(directory + "/new") << kSample;
    ASSERT_EQ(std::rename((directory + "/new").c_str(), path.c_str()), 0);
  };
  write();
  const auto first = checkpoint_version(path);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(checkpoint_version(path), first);
  write();
  EXPECT_NE(checkpoint_version(path), first);
  EXPECT_EQ(read_checkpoint(path)->allocations.size(), 1U);
  EXPECT_EQ(read_checkpoint(path)->version, checkpoint_version(path));
}

TEST(Checkpoint, IsAsOldAsItsFile) {
  std::string directory = testing::TempDir() + "checkpointXXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/" + std::string(kCheckpointName);
  std::ofstream(path) << kSample;
  const auto age_of = [&](std::chrono::hours age) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
    return std::chrono::round<std::chrono::hours>(SystemClock().now() - read_checkpoint(path)->written_at).count();
  };
  EXPECT_EQ(age_of(std::chrono::hours(3)), 3);
  EXPECT_EQ(age_of(std::chrono::hours(-3)), 0) << "the machine's time was set back since";
  std::filesystem::remove_all(directory);
}

TEST(Checkpoint, TheVersionFromMemoryIsTheFilesOwn) {
  std::string directory = testing::TempDir() + "checkpointXXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/" + std::string(kCheckpointName);
  Workers workers;
  const WatchedCheckpoint watched(directory, workers);
  EXPECT_EQ(watched.version(), 0U);
  EXPECT_EQ(watched.read().error().code, ErrorCode::not_found);
  std::ofstream(path) << kSample;
  const auto version = checkpoint_version(path);
  ASSERT_NE(version, 0U);
  EXPECT_EQ(cached_checkpoint_version(path).value_or(version), version) << "nullopt: not in memory, or an old kernel";
  EXPECT_EQ(watched.version(), version);
  const auto read = watched.read();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->version, version);
  EXPECT_EQ(read->allocations.size(), 1U);
  std::filesystem::remove_all(directory);
}

// As kubelets of 1.34 and 1.30 write it.
TEST(ClaimRecord, HasClaimsOrMayHaveThem) {
  std::string directory = testing::TempDir() + "claimsXXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/dra_manager_state";
  const auto holds = [&](const std::string& text) {
    std::ofstream(path) << text;
    return may_hold_claims(directory);
  };
  EXPECT_FALSE(may_hold_claims(directory)) << "no claims with this kubelet";
  EXPECT_FALSE(holds(R"({"Data":"{\"kind\":\"DRACheckpoint\",\"ClaimInfoStateList\":[]}","Checksum":1})"));
  EXPECT_TRUE(holds(R"({"Data":"{\"ClaimInfoStateList\":[{\"ClaimUID\":\"u1\",\"PodUIDs\":{}}]}","Checksum":1})"));
  EXPECT_TRUE(holds(R"({"version":"v1","entries":[{"DriverName":"a","ClaimUID":"u1"}],"checksum":1})"));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_TRUE(may_hold_claims(directory)) << "not readable";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace neuron::plugin
