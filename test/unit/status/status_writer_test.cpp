#include "agent/status/status_writer.h"

#include <thread>

#include "test/unit/status/writer_fixture.h"

namespace neuron::status {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class StatusWriterTest : public WriterFixture {};

TEST_F(StatusWriterTest, TellsWhatThereIs) {
  begin();
  EXPECT_EQ(label("neuron-agent/devices"), "16");
  EXPECT_EQ(label("a"), "b");
  EXPECT_EQ(condition("NeuronHealth")["reason"], "NeuronHasNoError");
  EXPECT_EQ(status("AcceleratedHardwareReady"), "True");
  EXPECT_EQ(status("Ready"), "True");
  EXPECT_THAT(reasons_told(), IsEmpty());
  EXPECT_TRUE(writer_->state().current);
  EXPECT_EQ(writer_->state().writes, 2U);
}

TEST_F(StatusWriterTest, WaitsAtTheStartWhereNothingIsWrong) {
  say(well_host());
  EXPECT_THAT(api_.calls(), IsEmpty());
  clock_.advance(spread_of("n1", StatusWriter::kSpread) - std::chrono::milliseconds(1));
  settle();
  EXPECT_THAT(api_.calls(), IsEmpty());
  clock_.advance(std::chrono::milliseconds(1));
  settle();
  EXPECT_EQ(api_.calls().size(), 3U);
}

TEST_F(StatusWriterTest, AFaultAtTheStartIsToldAtOnce) {
  say(well_host());
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  say(host);
  EXPECT_EQ(status("NeuronHealth"), "True");
  EXPECT_EQ(status("AcceleratedHardwareReady"), "False");
  EXPECT_THAT(reasons_told(), ElementsAre("SramEccUncorrected"));
}

// Mostly a module that is not loaded, so all nodes have it and all agents would ask at once.
TEST_F(StatusWriterTest, AFaultOfAnInterfaceAtTheStartWaitsItsTurn) {
  model::HostScan host = well_host();
  for (model::EfaInterface& efa : host.efas) {
    efa.health = health::verdict(health::reasons::kIbUverbsNotLoaded, efa.name + ": no verbs device");
  }
  say(host);
  EXPECT_THAT(api_.calls(), IsEmpty());
  after(StatusWriter::kSpread);
  EXPECT_EQ(label("neuron-agent/health"), "unhealthy");
  EXPECT_THAT(reasons_told(), ElementsAre("IbUverbsNotLoaded")) << "one event for all of them";
}

TEST_F(StatusWriterTest, AFaultAndItsEnd) {
  begin();
  const std::string before = condition("NeuronHealth")["lastTransitionTime"];
  after(minutes(10));
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  say(host);
  EXPECT_EQ(status("NeuronHealth"), "True");
  EXPECT_EQ(condition("NeuronHealth")["reason"], "SramEccUncorrected");
  EXPECT_NE(condition("NeuronHealth")["lastTransitionTime"], before);
  EXPECT_EQ(label("neuron-agent/health"), "unhealthy");
  EXPECT_THAT(reasons_told(), ElementsAre("SramEccUncorrected"));
  after(minutes(10));
  say(well_host());
  EXPECT_EQ(status("NeuronHealth"), "False");
  EXPECT_EQ(status("AcceleratedHardwareReady"), "True");
  EXPECT_EQ(label("neuron-agent/health"), "healthy");
  EXPECT_THAT(reasons_told(), UnorderedElementsAre("Healthy", "SramEccUncorrected"));
}

TEST_F(StatusWriterTest, AnIdleNodeAsksLittle) {
  begin();
  api_.forget_calls();
  after(std::chrono::hours(24));
  EXPECT_LE(api_.calls().size(), 6U * 24U);
  EXPECT_GE(api_.calls().size(), 2U * 24U);
}

// The heartbeat moves, the transition never does, whoever writes it.
TEST_F(StatusWriterTest, LastTransitionTimeMovesWithTheStatusAlone) {
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  begin(host);
  const std::string since = condition("NeuronHealth")["lastTransitionTime"];
  const std::string beat = condition("NeuronHealth")["lastHeartbeatTime"];
  after(std::chrono::hours(2));
  EXPECT_NE(condition("NeuronHealth")["lastHeartbeatTime"], beat);
  EXPECT_EQ(condition("NeuronHealth")["lastTransitionTime"], since);
  set_health(host, 3, repairable(3));
  for (int i = 4; i < 16; ++i) set_health(host, i, repairable(i));
  say(host);
  EXPECT_EQ(condition("NeuronHealth")["reason"], "MemEccRepairableUncorrected");
  EXPECT_EQ(condition("NeuronHealth")["lastTransitionTime"], since);
  start_anew();
  say(host);
  after(std::chrono::hours(1));
  EXPECT_EQ(condition("NeuronHealth")["lastTransitionTime"], since);
  EXPECT_EQ(condition("AcceleratedHardwareReady")["lastTransitionTime"], since);
}

TEST_F(StatusWriterTest, ARestartWritesNothing) {
  begin();
  api_.forget_calls();
  start_anew();
  begin();
  EXPECT_EQ(api_.calls().size(), 1U);
  EXPECT_THAT(api_.writes(), IsEmpty());
}

TEST_F(StatusWriterTest, ACounterThatMovesOnIsWrittenNowAndThen) {
  model::HostScan host = well_host();
  begin(host);
  api_.forget_calls();
  for (int errors = 1; errors <= 720; ++errors) {  // an hour, a scan every 5 s
    set_health(host, 3, repairable(3, errors));
    say(host);
    after(seconds(5));
  }
  EXPECT_LE(api_.writes().size(), 20U);
  after(minutes(5));
  EXPECT_THAT(condition("NeuronHealth")["message"].get<std::string>(), testing::HasSubstr("720 repairable"));
}

TEST_F(StatusWriterTest, AFlappingDeviceIsHeldToARate) {
  model::HostScan ill = well_host();
  set_health(ill, 3, broken(3));
  begin();
  api_.forget_calls();
  for (int i = 0; i < 360; ++i) {  // half an hour, every 5 s another
    say(i % 2 == 0 ? ill : well_host());
    after(seconds(5));
  }
  EXPECT_LE(api_.writes().size(), 2U * (6U + 60U) + 4U * 30U);
  after(minutes(2));
  EXPECT_EQ(status("NeuronHealth"), "False");
  int told = 0;
  for (const Json& event : api_.all(kEvents)) told += event["count"].get<int>();
  EXPECT_EQ(told, 360);
}

TEST_F(StatusWriterTest, HardwareThatGoesTakesItsWordsAlong) {
  begin();
  say(model::HostScan{});
  after(minutes(1));
  EXPECT_EQ(api_.at(kNode)["metadata"]["labels"], (Json{{"a", "b"}}));
  EXPECT_EQ(api_.at(kNode)["status"]["conditions"].size(), 1U);
  EXPECT_FALSE(api_.at(kNode)["metadata"].contains("managedFields"));
}

TEST_F(StatusWriterTest, LeftoversOfAPredecessorGo) {
  begin();
  start_anew();
  begin(model::HostScan{});
  EXPECT_EQ(api_.at(kNode)["metadata"]["labels"], (Json{{"a", "b"}}));
  EXPECT_EQ(api_.at(kNode)["status"]["conditions"].size(), 1U);
}

TEST_F(StatusWriterTest, RunStopsAtOnceAndTellsWhatIsSetMeanwhile) {
  const SystemClock clock;
  StatusWriter writer(api_, settings(), clock);
  std::jthread thread([&](const std::stop_token& stop) { writer.run(stop); });
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  writer.set(snapshot_of(host));
  EXPECT_TRUE(api_.wait([&] { return status("NeuronHealth") == "True"; }));
  EXPECT_TRUE(api_.wait([&] { return !reasons_told().empty(); }));
  writer.set(snapshot_of(well_host()));
  EXPECT_TRUE(api_.wait([&] { return status("NeuronHealth") == "False"; }));
  thread.request_stop();
  thread.join();
}

}  // namespace
}  // namespace neuron::status
