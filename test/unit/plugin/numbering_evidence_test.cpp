#include "plugin/kubelet/numbering_evidence.h"

#include <gtest/gtest.h>

#include <string>

namespace neuron::plugin {
namespace {

// A ContainerAllocateResponse with NEURON_RT_VISIBLE_CORES, /dev/neuron7 and /dev/neuron8, as the kubelet records it.
constexpr const char* kAnswer =
    "Ch4KF05FVVJPTl9SVF9WSVNJQkxFX0NPUkVTEgMwLTMaJAoML2Rldi9uZXVyb243EhAvc2ltL2Rldi9u"
    "ZXVyb243GgJydxokCgwvZGV2L25ldXJvbjgSEC9zaW0vZGV2L25ldXJvbjgaAnJ3";

std::string document(const std::string& entries, const std::string& registered) {
  return R"({"Data":{"PodDeviceEntries":[)" + entries + R"(],"RegisteredDevices":{)" + registered +
         R"(}},"Checksum":1})";
}

std::string entry(const std::string& resource, const std::string& ids, const std::string& answer) {
  return R"({"PodUID":"u","ContainerName":"c","ResourceName":")" + resource + R"(","DeviceIDs":)" + ids +
         R"(,"AllocResp":")" + answer + R"("})";
}

TEST(NumberingEvidence, HasCoreIdsTheirDevicesAndTheHighestListed) {
  const auto evidence = parse_numbering_evidence(
      document(entry("aws.amazon.com/neuroncore", R"({"0":["33","32"],"1":["31","32"]})", kAnswer) + "," +
                   entry("aws.amazon.com/neuron", R"({"0":["3"]})", kAnswer) + "," +
                   entry("aws.amazon.com/neuroncore", R"({"-1":["2"]})", "%%"),
               R"("aws.amazon.com/neuroncore":["0","63","9"],"aws.amazon.com/neuron":["99"])"));
  ASSERT_EQ(evidence.given.size(), 2U);
  EXPECT_EQ(evidence.given[0].cores, (std::vector<int>{31, 32, 33}));
  EXPECT_EQ(evidence.given[0].devices, (std::vector<int>{7, 8}));
  EXPECT_EQ(evidence.given[1].cores, (std::vector<int>{2}));
  EXPECT_TRUE(evidence.given[1].devices.empty()) << "an answer that makes no sense names no device";
  EXPECT_EQ(evidence.highest_listed, 63);
}

TEST(NumberingEvidence, OddTextGivesNothing) {
  const std::string cores = "aws.amazon.com/neuroncore";
  for (const std::string& odd :
       {std::string(), std::string("{"), std::string("[]"), std::string(100000, '['), std::string(R"({"Data":7})"),
        std::string(R"({"ResourceName":1})"), document("null,7,{}", ""), document(entry(cores, "[[]]", ""), "\"a\":{}"),
        document(entry(cores, R"({"0":["x","-1","99999999999",7]})", ""), R"("aws.amazon.com/neuroncore":{"0":[]})")}) {
    const auto evidence = parse_numbering_evidence(odd);
    EXPECT_TRUE(evidence.given.empty()) << odd.substr(0, 80);
    EXPECT_FALSE(evidence.highest_listed);
  }
  EXPECT_TRUE(read_numbering_evidence("/nonexistent").given.empty());
}

}  // namespace
}  // namespace neuron::plugin
