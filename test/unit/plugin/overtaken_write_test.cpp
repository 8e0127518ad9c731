#include "test/unit/plugin/served_resources_fixture.h"

namespace neuron::plugin {
namespace {

// The kubelet collects what a checkpoint shows under its lock and writes it without: a write that another overtakes
// lands last, and shows what was before.
struct OvertakenWrite : ServedResourcesTest {
  const model::Allocation init{"", "", "init", "aws.amazon.com/neuroncore", {"18"}, "u1"};

  // A container gets core 18 of device 9, and its entry is in the checkpoint.
  void admit_init_container() {
    start("trn1.32xlarge");
    pass(5000);
    ASSERT_TRUE(allocate(Resource::neuroncore, {"18"}));
    checkpoint.allocations = {init};
    write_checkpoint();
    pass(0);
  }
  void write_from_before() {
    checkpoint.allocations.clear();
    write_checkpoint();
  }
  // As DevicePluginService::Allocate: in `answer` once it is known.
  void ask(Resource resource, const std::vector<std::string>& units) {
    answer.reset();
    const auto answer_now = [this, resource, units] {
      answer = allocations.allocate(resource, units).has_value();
      admissions.answered(*answer ? Admissions::Outcome::given : Admissions::Outcome::refused);
    };
    admissions.answer(resource, [this, resource, units, answer_now] {
      if (!allocations.needs_fresh_checkpoint(resource, units)) return answer_now();
      admissions.wait_for_checkpoint(resource, clock.now(), [this, resource, units, answer_now] {
        const auto later = allocations.needs_second_checkpoint(resource, units);
        if (!later) return answer_now();
        admissions.wait_for_checkpoint(resource, *later, answer_now);
      });
    });
  }
  // The streams have sent what was published since.
  void send_lists() {
    pass(0);
    admissions.list_published();
  }
  std::optional<bool> answer;
};

TEST_F(OvertakenWrite, IsNotTakenForTheFreshOneThatAnAnswerWaitsFor) {
  admit_init_container();
  ask(Resource::neuron, {"9"});
  EXPECT_EQ(answer, std::nullopt) << "its list is not written";
  send_lists();
  write_from_before();
  EXPECT_EQ(answer, std::nullopt) << "a later one decides";
  write_from_before();
  EXPECT_EQ(answer, std::nullopt) << "that is none";
  checkpoint.allocations = {init};
  pass(1020);
  send_lists();
  write_checkpoint();
  EXPECT_EQ(answer, false) << "core 18 is in use";
}

// Its container has just been given the core, and asks for the device now: a foreign list's write lands between.
TEST_F(OvertakenWrite, DoesNotEndTheFirstAnswerOfTheSameContainer) {
  start("trn1.32xlarge");
  pass(5000);
  ASSERT_TRUE(allocate(Resource::neuroncore, {"18"}));
  ask(Resource::neuron, {"8"});
  send_lists();
  write_from_before();
  EXPECT_EQ(answer, std::nullopt);
  checkpoint.allocations = {init};
  pass(1020);
  send_lists();
  write_checkpoint();
  EXPECT_EQ(answer, false) << "not the same hardware";
}

TEST_F(OvertakenWrite, ThatLandsBeforeTheListIsSentIsNotTakenForTheFreshOne) {
  admit_init_container();
  ask(Resource::neuron, {"9"});
  write_from_before();
  checkpoint.allocations = {init};
  send_lists();
  write_checkpoint();
  EXPECT_EQ(answer, false) << "core 18 is in use";
}

TEST_F(OvertakenWrite, IsTheTruthWhenALaterOneShowsTheSame) {
  admit_init_container();
  ask(Resource::neuron, {"9"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(answer, std::nullopt);
    send_lists();
    write_from_before();
    pass(1020);
  }
  EXPECT_EQ(answer, true) << "the pod has ended";
}

TEST_F(OvertakenWrite, IsKnownByTheFilesTimeHoweverLateItLands) {
  admit_init_container();
  pass(5000);
  ask(Resource::neuron, {"9"});
  send_lists();
  checkpoint.allocations.clear();
  ++checkpoint.written;  // its disk took seconds
  KubeletDirectory::Changes changes;
  changes.checkpoints_written = 1;
  manager.handle(changes);
  EXPECT_EQ(answer, std::nullopt);
  checkpoint.allocations = {init};
  send_lists();
  write_checkpoint();
  EXPECT_EQ(answer, false) << "core 18 is in use";
}

// On a node that is never idle lists wait longer than List does.
TEST_F(OvertakenWrite, DoesNotMakeListEndWhatItNeverShows) {
  admit_init_container();
  kubelet.asked.clear();
  for (int i = 0; i < 4; ++i) {
    if (i == 1) write_from_before();
    pass(130);
    admissions.called();
  }
  pass(120);
  ASSERT_EQ(kubelet.asked.size(), 1U);
  list_holders();
  ASSERT_EQ(kubelet.servers.at(Resource::neuron)->lists.size(), 1U) << "the device is still offered";
  ask(Resource::neuron, {"9"});
  EXPECT_NE(answer, true) << "core 18 is in use";
}

TEST_F(OvertakenWrite, IsFollowedByOneThatIsWantedForWhatItLeavesOpen) {
  admit_init_container();
  pass(300);
  admissions.list_published();
  checkpoint.allocations = {init};
  write_checkpoint();
  write_from_before();
  pass(300);
  list_holders();
  EXPECT_TRUE(allocations.holds_anything());
  const auto lists = kubelet.servers.at(Resource::neuroncore)->lists.size();
  pass(300);
  ASSERT_EQ(kubelet.servers.at(Resource::neuroncore)->lists.size(), lists + 1) << "as it was";
  pass(500);
  list_holders();
  pass(0);
  write_from_before();
  EXPECT_FALSE(allocations.holds_anything()) << "no write is so late: the pod has ended";
}

// A pod refused half-way was given the cores that the next one gets under the other name: nothing is withheld then.
TEST_F(OvertakenWrite, IsAskedAboutSoonAlsoWhenNothingIsWithheld) {
  start("trn1.32xlarge");
  pass(5000);
  ASSERT_TRUE(allocate(Resource::neuroncore, {"18", "19"}));
  ASSERT_TRUE(allocate(Resource::neuron, {"9"}));
  checkpoint.allocations = {{"", "", "next", "aws.amazon.com/neuron", {"9"}, "u2"}};
  write_checkpoint();
  for (int i = 0; i < 6; ++i) {
    pass(250);
    if (!kubelet.asked.empty()) {
      list_holders({{"default", "next", "next", "aws.amazon.com/neuron", {"9"}}});
      kubelet.asked.clear();
    }
    write_checkpoint();
  }
  EXPECT_EQ(unhealthy(Resource::neuroncore), 2U);
}

// A kubelet shows an init container in its checkpoint alone. The first list makes it write that, before any answer.
TEST_F(OvertakenWrite, AtTheAgentsStartIsReplacedBeforeTheFirstAnswer) {
  find_directory();
  list_holders();
  scan("trn1.32xlarge");
  register_all();
  admissions.list_published();
  ask(Resource::neuron, {"9"});
  EXPECT_EQ(answer, std::nullopt);
  checkpoint.allocations = {init};
  write_checkpoint();
  EXPECT_EQ(answer, std::nullopt) << "core 18 is in use, unless a fresh checkpoint says otherwise";
  send_lists();
  write_checkpoint();
  EXPECT_EQ(answer, false);
  ask(Resource::neuron, {"8"});
  EXPECT_EQ(answer, true);
}

}  // namespace
}  // namespace neuron::plugin
