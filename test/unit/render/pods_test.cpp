#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "test/unit/render/scans.h"
#include "tools/neuron-ls/node_reader.h"
#include "tools/pods/pods.h"

namespace neuron::pods {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const std::vector<model::Allocation> kThree = {
    {"default", "a", "main", "aws.amazon.com/neuron", {"0", "12"}},
    {"train", "b", "side", "vpc.amazonaws.com/efa", {}},
    {"train", "b", "main", "neuron.aws.com", {"neuron-device-3"}, "", "chips"}};

TEST(PodLines, WhatIsWrittenIsRead) {
  EXPECT_EQ(parse_pod_lines(format_pod_lines(kThree)).value(), kThree);
  EXPECT_THAT(parse_pod_lines(format_pod_lines({})).value(), IsEmpty());
}

TEST(PodLines, HalfAnAnswerIsNone) {
  const std::string whole = format_pod_lines(kThree);
  for (std::size_t length = 0; length < whole.size() - 1; ++length) {
    EXPECT_FALSE(parse_pod_lines(whole.substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_pod_lines("neuron-pods/1\nend\n"));
  EXPECT_FALSE(parse_pod_lines("neuron-pods/2\na\tb\tc\td\nend\n"));
}

TEST(PodLines, ForeignBytesAreWrittenHarmlessAndRefusedWhenRead) {
  const auto parsed = parse_pod_lines(format_pod_lines({{"\x1b[31m", "a\tb", "c", std::string(9999, 'x'), {"\n"}}}));
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)[0].pod_namespace, "\\x1b[31m");
  EXPECT_EQ((*parsed)[0].ids.size(), 1U);
  EXPECT_LT((*parsed)[0].resource_name.size(), 1025U);
  EXPECT_FALSE(parse_pod_lines("neuron-pods/2\n\x1b[31m\tp\tc\tr\t\t1\nend\n"));
  EXPECT_FALSE(parse_pod_lines("neuron-pods/2\n" + std::string(2000, 'x') + "\tp\tc\tr\t\t1\nend\n"));
}

class PodQuery : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "pods-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Asks a shell script in the place of `neuron-agent pods`.
  Result<std::vector<model::Allocation>> ask(const std::string& script, milliseconds deadline = milliseconds(20'000)) {
    const std::string program = directory_ / "neuron-pods";
    std::ofstream(program) << "#!/bin/sh\n" << script << '\n';
    EXPECT_EQ(::chmod(program.c_str(), 0755), 0);
    return query_pods_with({program}, directory_ / "kubelet.sock", deadline);
  }

  std::filesystem::path directory_;
};

TEST_F(PodQuery, GivesTheSocketAndReadsTheAnswer) {
  const auto answer = ask("printf 'neuron-pods/2\\nns\\t%s\\t%s\\tr\\t\\t7\\nend\\n' \"${1##*/}\" \"$2\"");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(*answer, ElementsAre(model::Allocation{"ns", "kubelet.sock", "20000", "r", {"7"}}));
}

TEST_F(PodQuery, ItsLastLineOnStderrIsTheReason) {
  const auto answer = ask("echo noise >&2; echo 'nobody listens' >&2; exit 1");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "nobody listens");
}

TEST_F(PodQuery, AHangingProgramIsKilledAtTheDeadline) {
  const auto answer = ask("echo $$ > \"${1%/*}/pid\"; exec sleep 600", milliseconds(500));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::deadline_exceeded);
  int pid = 0;
  std::ifstream(directory_ / "pid") >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_NE(::kill(pid, 0), 0) << "it was reaped";
}

TEST_F(PodQuery, AnEndlessAnswerIsCutAndRefused) {
  const auto answer = ask("exec yes neuron-pods/2");
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("too long"));
}

TEST_F(PodQuery, MissingSocketAndProgramAreNamed) {
  const auto no_program = query_pods_with({directory_ / "nothing"}, "x", milliseconds(1000));
  ASSERT_FALSE(no_program);
  EXPECT_THAT(no_program.error().message, HasSubstr("nothing"));
  const auto no_socket = query_pods(directory_ / "kubelet.sock", milliseconds(1000));
  ASSERT_FALSE(no_socket);
  EXPECT_EQ(no_socket.error().code, ErrorCode::not_found);
}

TEST(PodUses, IdsBecomeDevicesCoresAndInterfaces) {
  render::NodeReport report;
  report.host = test::trn1_32xlarge();
  report.core_ids = test::core_ids_of(report.host);
  report.host.efas.resize(1);
  report.host.efas[0].name = "rdmap16s25";
  const auto uses = report::pod_uses({{"b", "p", "c", "aws.amazon.com/neuroncore", {"9", "400", "x"}},
                                  {"b", "p", "c", "vpc.amazonaws.com/efa", {"rdmap16s25", "other"}},
                                  {"a", "p", "c", "aws.amazon.com/neurondevice", {"15"}},
                                  {"z", "p", "c", "example.com/gpu", {"0"}}},
                                 report, "neuron.aws.com");
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_THAT(uses[0].cores, UnorderedElementsAre(30, 31));
  EXPECT_THAT(uses[0].devices, UnorderedElementsAre(15));
  EXPECT_THAT(uses[1].cores, UnorderedElementsAre(9));
  EXPECT_THAT(uses[1].devices, UnorderedElementsAre(4));
  EXPECT_THAT(uses[1].efas, UnorderedElementsAre("rdmap16s25"));
}

TEST(PodUses, NamesInClaimsOfOurDriverBecomeTheSame) {
  render::NodeReport report;
  report.host = test::trn1_32xlarge();
  report.core_ids = test::core_ids_of(report.host);
  report.host.efas.resize(1);
  report.host.efas[0].name = "rdmap16s25";
  const auto claimed = [](const std::string& claim, const std::string& driver, std::vector<std::string> ids) {
    return model::Allocation{"b", "p", "c", driver, std::move(ids), "", claim};
  };
  const auto uses = report::pod_uses(
      {claimed("chips", "neuron.aws.com", {"efa-rdmap16s25", "neuron-device-3-core-1", "neuron-group-4-7"}),
       claimed("chips", "gpu.example.com", {"neuron-device-0"}),
       claimed("odd", "neuron.aws.com", {"neuron-device-99", "neuron-device-1x", "efa-rdmap9s9", ""}),
       {"b", "p", "c", "aws.amazon.com/neuroncore", {"9"}}},
      report, "neuron.aws.com");
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].claim, "") << "through a device plugin";
  EXPECT_THAT(uses[0].cores, UnorderedElementsAre(9));
  EXPECT_EQ(uses[1].claim, "chips");
  EXPECT_THAT(uses[1].devices, ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(uses[1].cores, ElementsAre(7, 8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(uses[1].efas, ElementsAre("rdmap16s25"));
  EXPECT_EQ(report::pod_uses({claimed("chips", "gpu.example.com", {"neuron-device-0"})}, report, "gpu.example.com").size(),
            1U);
}

}  // namespace
}  // namespace neuron::pods
