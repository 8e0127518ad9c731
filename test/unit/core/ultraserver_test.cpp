#include "agent/core/ultraserver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::core {
namespace {

using Phase = Election::Phase;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

model::HostScan busy_host() {
  model::HostScan scan = test::silent_scan("trn2u.48xlarge");
  for (auto& device : scan.devices) device.signals.reset_state = 1;
  scan.ultraserver.emplace().busy = true;
  return scan;
}

TEST(Elections, RunWhenEveryDeviceIsReset) {
  const Election election = election_of(busy_host());
  EXPECT_EQ(election.phase, Phase::running);
  EXPECT_THAT(election.sentence, HasSubstr("up to 14 minutes"));
  EXPECT_EQ(election.action, "");
}

TEST(Elections, WithoutTheRightToReadResetNoDeviceIsBlamed) {
  model::HostScan scan = busy_host();
  scan.devices[5].signals.reset_state.reset();
  EXPECT_EQ(election_of(scan).phase, Phase::running);
  EXPECT_THAT(election_of(scan).sentence, AllOf(HasSubstr("has not ended"), HasSubstr("not known of neuron5 (")));
  for (auto& device : scan.devices) device.signals.reset_state.reset();
  EXPECT_EQ(election_of(scan).phase, Phase::running);
  EXPECT_THAT(election_of(scan).sentence, HasSubstr("not known of neuron0, neuron1, neuron2, neuron3 and 12 more ("));
}

// The driver waits for it without end (docs/reference/driver.md#elections).
TEST(Elections, NameADeviceThatHangs) {
  model::HostScan scan = busy_host();
  scan.devices[5].presence = model::Presence::not_answering;
  EXPECT_EQ(election_of(scan).phase, Phase::running) << "its file reset was read; another read hangs";
  scan.devices[5].signals = {};
  const Election election = election_of(scan);
  EXPECT_EQ(election.phase, Phase::blocked);
  EXPECT_THAT(election.awaited, ElementsAre(5));
  EXPECT_THAT(election.sentence, HasSubstr("until every device is reset: neuron5 is not answering"));
}

// For ever, as long as one is not reset: the driver counts all of them first.
TEST(Elections, NameTheDevicesThatKeepThemFromBeginning) {
  model::HostScan scan = busy_host();
  scan.devices[3].signals.reset_state = 2;
  scan.devices[5].signals.reset_state = 0;
  scan.devices[9].presence = model::Presence::vanished;
  scan.devices.erase(scan.devices.begin() + 12);
  const Election election = election_of(scan);
  EXPECT_EQ(election.phase, Phase::blocked);
  EXPECT_THAT(election.awaited, ElementsAre(3, 5, 9, 12));
  EXPECT_THAT(election.sentence,
              AllOf(HasSubstr("neuron3 was given up by the driver (reset reads 2)"), HasSubstr("neuron5 is in reset"),
                    HasSubstr("neuron9 has vanished"), HasSubstr("neuron12 is missing")));
  EXPECT_THAT(election.action, HasSubstr("reload the Neuron driver"));
  scan.devices.clear();
  EXPECT_THAT(election_of(scan).sentence, HasSubstr("neuron3 is missing and 12 more"));
  scan.instance_type = "trn9.48xlarge";
  EXPECT_EQ(election_of(scan).phase, Phase::running) << "how many there should be is not known";
}

TEST(Elections, EndLinkedOrAlone) {
  model::HostScan scan = busy_host();
  scan.devices[3].signals.reset_state = 2;  // later: it counts no more
  scan.ultraserver = model::UltraServer{false, {4}, {}};
  EXPECT_EQ(election_of(scan).phase, Phase::alone);
  EXPECT_THAT(election_of(scan).sentence, HasSubstr("ended without another server"));
  scan.ultraserver = model::UltraServer{false, {1, 3, 4}, {{2, "8f10b6e35a7c92d3", 1}, {4, "8f10b6e35a7c92d4", 3}}};
  EXPECT_EQ(election_of(scan).phase, Phase::linked);
  EXPECT_EQ(election_of(scan).sentence, "node 3 of 4 of UltraServer 8f10b6e35a7c92d4");
}

TEST(Elections, AreNotOfOtherPlatforms) {
  model::HostScan scan = busy_host();
  scan.ultraserver = model::UltraServer{};  // the files of 2.2x on every platform
  EXPECT_EQ(election_of(scan).phase, Phase::none);
  scan.ultraserver = model::UltraServer{false, {4}, {}, 0};  // a partition of this node alone
  EXPECT_EQ(election_of(scan).phase, Phase::none);
  scan.ultraserver.reset();
  EXPECT_EQ(election_of(scan).phase, Phase::none);
}

}  // namespace
}  // namespace neuron::core
