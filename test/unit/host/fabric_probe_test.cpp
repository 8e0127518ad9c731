// The real libfabric through its tcp provider, and a stand-in that misbehaves (fabric_probe_fake.cpp).

#include "agent/host/fabric_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>

namespace neuron::host {
namespace {

using preflight::FabricFacts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using State = FabricFacts::State;
using namespace std::chrono_literals;

constexpr auto kPlenty = 20s;  // for what ends by itself

FabricFacts ask_fake(const char* how, std::chrono::milliseconds budget = kPlenty) {
  ::setenv("FAKE_FABRIC", how, 1);
  ::setenv("FI_PROVIDER", "^efa", 1);  // must not reach the library
  FabricRequest request;
  request.libraries = {NEURON_FAKE_FABRIC};
  request.budget = budget;
  auto facts = probe_fabric(request);
  ::unsetenv("FAKE_FABRIC");
  ::unsetenv("FI_PROVIDER");
  return facts;
}

TEST(FabricProbe, RealLibraryThroughTcp) {
  FabricRequest request;
  request.provider = "tcp";
  request.budget = kPlenty;
  const FabricFacts facts = probe_fabric(request);
  ASSERT_EQ(facts.state, State::answered) << facts.message;
  EXPECT_EQ(facts.error_code, 0) << facts.message;
  EXPECT_THAT(facts.interfaces, Not(IsEmpty()));  // the loopback at least
  EXPECT_THAT(facts.version, ::testing::MatchesRegex("[0-9]+\\.[0-9]+"));
  EXPECT_EQ(facts.provider, "tcp");
}

TEST(FabricProbe, RealLibraryWithoutTheProvider) {
  FabricRequest request;
  request.provider = "no_such_provider";
  request.budget = kPlenty;
  const FabricFacts facts = probe_fabric(request);
  ASSERT_EQ(facts.state, State::answered);
  EXPECT_EQ(facts.error_code, 61);
  EXPECT_EQ(facts.message, "No data available");
  EXPECT_THAT(facts.interfaces, IsEmpty());
}

TEST(FabricProbe, MissingLibrary) {
  FabricRequest request;
  request.libraries = {"libno_such_fabric.so.1", "/nowhere/libfabric.so.1"};
  request.budget = kPlenty;
  const FabricFacts facts = probe_fabric(request);
  EXPECT_EQ(facts.state, State::no_library);
  EXPECT_THAT(facts.message, HasSubstr("libno_such_fabric.so.1"));
}

TEST(FabricProbe, LibraryThatIsSomethingElse) {
  FabricRequest request;
  request.libraries = {"libm.so.6"};
  request.budget = kPlenty;
  const FabricFacts facts = probe_fabric(request);
  EXPECT_EQ(facts.state, State::no_library);
  EXPECT_EQ(facts.message, "libm.so.6 lacks the functions of libfabric");
}

TEST(FabricProbe, CountsInterfacesNotEntries) {
  const FabricFacts facts = ask_fake("nics");
  EXPECT_EQ(facts.state, State::answered);
  EXPECT_THAT(facts.interfaces, ElementsAre("rdmap16s25", "rdmap16s26"));
  EXPECT_EQ(facts.version, "1.17");
}

TEST(FabricProbe, ItsOwnWordsAreKeptAndHarmless) {
  const FabricFacts facts = ask_fake("no_data");
  EXPECT_EQ(facts.state, State::answered);
  EXPECT_EQ(facts.error_code, 61);
  EXPECT_THAT(facts.log, ElementsAre("efa:core:init():7<warn> no device\\x1b[31m was found"));
}

TEST(FabricProbe, HangIsKilled) {
  const FabricFacts facts = ask_fake("hang", 100ms);
  EXPECT_EQ(facts.state, State::timed_out);
  EXPECT_EQ(facts.budget, 100ms);
}

TEST(FabricProbe, CrashIsAFindingNotOurEnd) {
  const FabricFacts facts = ask_fake("crash");
  EXPECT_EQ(facts.state, State::died);
  EXPECT_EQ(facts.signal, SIGSEGV);
}

TEST(FabricProbe, LibraryThatEndsTheProcess) {
  const FabricFacts facts = ask_fake("exit");
  EXPECT_EQ(facts.state, State::failed);
  EXPECT_EQ(facts.message, "the child ended with status 7");
}

TEST(FabricProbe, FloodOfWordsIsBounded) {
  const FabricFacts facts = ask_fake("flood");
  EXPECT_EQ(facts.state, State::answered);
  EXPECT_EQ(facts.message, "another error");
  ASSERT_THAT(facts.log, SizeIs(3));
  for (const std::string& line : facts.log) EXPECT_LE(line.size(), 210U);
}

TEST(FabricAnswer, BrokenOffIsAFailure) {
  EXPECT_EQ(parse_fabric_answer("").state, State::failed);
  EXPECT_EQ(parse_fabric_answer("version 1.17\ninterface a\n").state, State::failed);
  EXPECT_EQ(parse_fabric_answer("version 1.17\ninterface a\ndone\n").state, State::answered);
}

TEST(FabricAnswer, IsForeignText) {
  const auto facts = parse_fabric_answer("error x y\ninterface \x1b[2J\ninterface\nerror -5\nunknown 1\ndone\n");
  EXPECT_EQ(facts.error_code, 0);
  EXPECT_THAT(facts.interfaces, ElementsAre("\\x1b[2J"));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "interface n" + std::to_string(i) + '\n';
  EXPECT_THAT(parse_fabric_answer(many + "done").interfaces, SizeIs(256));
}

TEST(FabricAnswer, NicBehindADomain) {
  EXPECT_EQ(nic_of_domain("rdmap79s0-rdm"), "rdmap79s0");
  EXPECT_EQ(nic_of_domain("rdmap79s0-dgrm"), "rdmap79s0");
  EXPECT_EQ(nic_of_domain("lo"), "lo");
}

}  // namespace
}  // namespace neuron::host
