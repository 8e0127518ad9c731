#include "plugin/device/device_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using model::Resource;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A kubelet that registers when the test says so, and what it has been shown.
class FakeKubelet final : public KubeletPort {
 public:
  class Server final : public ResourceServer {
   public:
    Server(FakeKubelet& kubelet, Resource resource, std::string endpoint)
        : kubelet_(kubelet), resource_(resource), endpoint_(std::move(endpoint)) {
      kubelet_.servers[resource_] = this;
      kubelet_.sockets.push_back(endpoint_);
    }
    ~Server() override {
      if (kubelet_.servers[resource_] == this) kubelet_.servers.erase(resource_);
      std::erase(kubelet_.sockets, endpoint_);
    }
    [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
    [[nodiscard]] std::size_t watchers() const override { return kubelet_.watches ? 1 : 0; }
    void publish(UnitListPtr units) override { lists.push_back(std::move(units)); }
    void end_streams() override { ++ended; }
    void close() override {}
    std::vector<UnitListPtr> lists;
    int ended = 0;

   private:
    FakeKubelet& kubelet_;
    const Resource resource_;
    const std::string endpoint_;
  };

  Result<std::unique_ptr<ResourceServer>> serve(Resource resource) override {
    if (no_room) return fail(ErrorCode::unavailable, "no socket can be made there");
    return std::make_unique<Server>(*this, resource,
                                    std::string(model::short_name(resource)) + "-" + std::to_string(++made));
  }
  [[nodiscard]] bool exists(const std::string& endpoint) const override {
    return std::find(sockets.begin(), sockets.end(), endpoint) != sockets.end();
  }
  [[nodiscard]] bool somebody_listens(const std::string& /*socket*/) const override { return true; }
  [[nodiscard]] std::uint64_t kubelet() const override { return identity; }
  void start_registration(Resource resource, const std::string& endpoint) override {
    registering.push_back({resource, endpoint, std::nullopt});
  }
  void ask_holders(SteadyTime now) override { asked.push_back(now); }
  void ask_allocatable(SteadyTime /*now*/) override {}

  std::map<Resource, Server*> servers;
  std::vector<std::string> sockets;
  std::vector<RegisterDone> registering;
  std::vector<SteadyTime> asked;
  std::uint64_t identity = 1;
  int made = 0;
  bool watches = true;
  bool no_room = false;
};

class FakeCheckpoint final : public CheckpointSource {
 public:
  [[nodiscard]] holdings::CheckpointVersion version() const override { return written; }
  [[nodiscard]] Result<Checkpoint> read() const override {
    Checkpoint content;
    content.allocations = allocations;
    content.version = written;
    return content;
  }
  holdings::CheckpointVersion written = 1;
  std::vector<model::Allocation> allocations;
};

struct DeviceManagerTest : testing::Test {
  fakes::FakeClock clock;
  FakeCheckpoint checkpoint;
  Allocations allocations{{}, [this] { return checkpoint.written; }, clock};
  AdmissionGate admissions{clock, [this] { return checkpoint.written; }, [] {}};
  FakeKubelet kubelet;
  DeviceManager manager{{"1-a", std::chrono::seconds(10), {}}, {clock, allocations, admissions, checkpoint, kubelet}};

  void pass(int ms) {
    clock.advance(milliseconds{ms});
    manager.run_due(admissions.progress());
  }
  void find_directory() {
    KubeletDirectory::Changes changes;
    changes.usable = true;
    manager.handle(changes);
  }
  void scan(const std::string& type) {
    allocations.set_node(node_of(type));
    manager.handle(SnapshotChanged{});
  }
  void list_holders(std::vector<model::Allocation> pods = {}) {
    manager.handle(HoldersListed{clock.now(), std::move(pods)});
  }
  void fail_list() { manager.handle(HoldersListed{clock.now(), fail(ErrorCode::unavailable, "no answer")}); }
  // The kubelet answers every Register that waits; the resources, in order.
  std::vector<Resource> register_all(const std::optional<Error>& error = std::nullopt) {
    std::vector<Resource> resources;
    for (RegisterDone& done : std::exchange(kubelet.registering, {})) {
      resources.push_back(done.resource);
      done.error = error;
      manager.handle(done);
    }
    return resources;
  }
  void write_checkpoint() {
    ++checkpoint.written;
    KubeletDirectory::Changes changes;
    changes.checkpoints_written = 1;
    manager.handle(changes);
  }
  void restart_kubelet() {
    ++kubelet.identity;
    kubelet.sockets.clear();
    KubeletDirectory::Changes changes;
    changes.kubelet_appeared = true;
    manager.handle(changes);
  }
  void start(const std::string& type) {
    find_directory();
    list_holders();
    scan(type);
    register_all();
    write_checkpoint();
  }
  bool allocate(Resource resource, const std::vector<std::string>& units) {
    bool given = false;
    admissions.answer(resource, [&] {
      given = allocations.allocate(resource, units).has_value();
      admissions.answered(given ? Admissions::Outcome::given : Admissions::Outcome::refused);
    });
    return given;
  }
  std::size_t unhealthy(Resource resource) {
    const UnitList& list = *kubelet.servers.at(resource)->lists.back();
    return static_cast<std::size_t>(std::count_if(list.begin(), list.end(), [](auto& unit) { return !unit.healthy; }));
  }
};

TEST_F(DeviceManagerTest, RegistersWhatTheNodeHasOnceItKnowsWhoHoldsWhat) {
  scan("inf2.48xlarge");
  find_directory();
  EXPECT_THAT(kubelet.asked, ElementsAre(clock.now()));
  EXPECT_THAT(kubelet.registering, IsEmpty());
  list_holders();
  EXPECT_THAT(register_all(), UnorderedElementsAre(Resource::neuroncore, Resource::neuron, Resource::neurondevice))
      << "and no interface, as this node has none";
  EXPECT_EQ(kubelet.servers.at(Resource::neuron)->lists.at(0)->size(), 12U);
}

TEST_F(DeviceManagerTest, AFirstListThatFailsIsNoKnowledgeAndIsAskedForAgain) {
  scan("inf2.48xlarge");
  find_directory();
  fail_list();
  EXPECT_THAT(kubelet.registering, IsEmpty()) << "pods may hold hardware by claims";
  pass(1000);
  EXPECT_EQ(kubelet.asked.size(), 2U);
  const model::Allocation claim{"team", "train", "main", "neuron.aws.com", {"neuron-device-3"}, "", "chips"};
  list_holders({claim});
  EXPECT_EQ(register_all().size(), 3U);
  EXPECT_EQ(unhealthy(Resource::neuron), 1U) << "in the first list already";
}

TEST_F(DeviceManagerTest, AListThatGoesOnFailingIsNotWaitedForLongButAskedForAgain) {
  scan("inf2.48xlarge");
  find_directory();
  for (int i = 0; i < 4; ++i) {
    fail_list();
    pass(1000);
  }
  EXPECT_THAT(kubelet.registering, IsEmpty());
  pass(1000);
  fail_list();
  EXPECT_EQ(register_all().size(), 3U) << "a node without List serves all the same";
  write_checkpoint();
  kubelet.asked.clear();
  pass(1000);
  pass(10'000);
  EXPECT_EQ(kubelet.asked.size(), 1U) << "although nothing is held";
  list_holders({{"team", "train", "main", "neuron.aws.com", {"neuron-device-3"}, "", "chips"}});
  pass(1000);
  EXPECT_EQ(unhealthy(Resource::neuron), 1U);
}

TEST_F(DeviceManagerTest, InAPodAListWithoutItIsNoKnowledge) {
  DeviceManager in_pod{{"1-a", std::chrono::seconds(10), {}, "agent-x"},
                       {clock, allocations, admissions, checkpoint, kubelet}};
  const auto list = [&](std::vector<model::Allocation> pods) {
    in_pod.handle(HoldersListed{clock.now(), std::move(pods)});
  };
  allocations.set_node(node_of("inf2.48xlarge"));
  list({});
  EXPECT_THAT(kubelet.registering, IsEmpty());
  clock.advance(milliseconds{1000});
  in_pod.run_due(admissions.progress());
  EXPECT_EQ(kubelet.asked.size(), 1U);
  list({{"kube-system", "agent-x", "", "", {}}});
  EXPECT_EQ(kubelet.registering.size(), 3U);
}

// A kubelet that has just started lists nothing until it has read its pods from the API server.
TEST_F(DeviceManagerTest, AListThatIsEmptyOnceEndsNoClaim) {
  scan("trn1.32xlarge");
  find_directory();
  list_holders({{"team", "train", "main", "neuron.aws.com", {"neuron-device-3"}, "", "chips"}});
  register_all();
  write_checkpoint();
  restart_kubelet();
  list_holders();
  register_all();
  write_checkpoint();
  pass(1000);
  EXPECT_EQ(unhealthy(Resource::neuron), 1U);
  EXPECT_FALSE(allocate(Resource::neuron, {"3"}));
}

TEST_F(DeviceManagerTest, WithoutAKubeletNothingIsRegisteredUntilItsSocketAppears) {
  kubelet.identity = 0;
  start("trn1.32xlarge");
  EXPECT_EQ(kubelet.made, 0);
  restart_kubelet();
  EXPECT_EQ(register_all().size(), 4U);
}

TEST_F(DeviceManagerTest, AnotherKubeletMakesNewEndpointsOfThoseThatItHasWiped) {
  start("trn1.32xlarge");
  const std::string before = kubelet.servers.at(Resource::neuron)->endpoint();
  restart_kubelet();
  EXPECT_EQ(register_all().size(), 4U);
  EXPECT_NE(kubelet.servers.at(Resource::neuron)->endpoint(), before);
}

TEST_F(DeviceManagerTest, ASocketOfOursThatVanishesIsReplaced) {
  start("trn1.32xlarge");
  const std::string gone = kubelet.servers.at(Resource::efa)->endpoint();
  std::erase(kubelet.sockets, gone);
  KubeletDirectory::Changes changes;
  changes.sockets.push_back({SocketWatch::Event::Kind::vanished, gone});
  manager.handle(changes);
  EXPECT_THAT(register_all(), ElementsAre(Resource::efa));
}

TEST_F(DeviceManagerTest, ARegistrationThatFailsIsTriedAgainEverMoreRarely) {
  scan("inf2.48xlarge");
  find_directory();
  list_holders();
  const Error refused{ErrorCode::unavailable, "no"};
  register_all(refused);
  EXPECT_THAT(register_all(refused), IsEmpty());
  for (const int wait : {20, 40, 80}) {
    pass(wait - 1);
    EXPECT_THAT(register_all(refused), IsEmpty());
    pass(1);
    EXPECT_EQ(register_all(refused).size(), 3U);
  }
}

TEST_F(DeviceManagerTest, AKubeletThatDoesNotWatchIsToldAgain) {
  start("inf2.48xlarge");
  kubelet.watches = false;
  pass(1000);
  pass(20);
  EXPECT_EQ(register_all().size(), 3U);
}

TEST_F(DeviceManagerTest, AStreamThatTheKubeletEndsIsRegisteredAnew) {
  start("inf2.48xlarge");
  kubelet.watches = false;
  manager.handle(StreamEnded{Resource::neuron});
  pass(20);
  EXPECT_THAT(register_all(), ElementsAre(Resource::neuron));
}

TEST_F(DeviceManagerTest, AnOlderStreamMayEndWhileANewerOneLives) {
  start("inf2.48xlarge");
  manager.handle(StreamEnded{Resource::neuron});
  pass(20);
  EXPECT_THAT(register_all(), IsEmpty());
}

TEST_F(DeviceManagerTest, HardwareThatAppearsIsRegistered) {
  start("inf2.48xlarge");
  scan("trn1.32xlarge");
  EXPECT_THAT(register_all(), ElementsAre(Resource::efa));
}

TEST_F(DeviceManagerTest, WithoutRoomForASocketItIsTriedAgain) {
  kubelet.no_room = true;
  start("inf2.48xlarge");
  EXPECT_EQ(kubelet.made, 0);
  kubelet.no_room = false;
  pass(20);
  EXPECT_EQ(register_all().size(), 3U);
}

// What one name gives leaves the other name's list, but not before the container's checkpoint is written.
TEST_F(DeviceManagerTest, AChangedListGoesOutWhenTheAdmissionIsOver) {
  start("trn1.32xlarge");
  ASSERT_TRUE(allocate(Resource::neuroncore, {"0"}));
  pass(300);
  EXPECT_EQ(unhealthy(Resource::neuron), 0U) << "the container may still ask for the device";
  write_checkpoint();
  pass(0);
  EXPECT_EQ(unhealthy(Resource::neuron), 1U);
  EXPECT_EQ(kubelet.servers.at(Resource::neuroncore)->lists.size(), 1U) << "its list has not changed";
}

// A retry found the next kubelet before inotify told of its socket; that its first pod is half admitted is not
// forgotten.
TEST_F(DeviceManagerTest, AKubeletThatWasMetBeforeItsSocketWasToldOfIsNoNewOne) {
  start("inf2.48xlarge");
  ++kubelet.identity;
  kubelet.watches = false;
  for (const Resource resource : {Resource::neuroncore, Resource::neuron, Resource::neurondevice}) {
    manager.handle(StreamEnded{resource});
  }
  pass(20);
  kubelet.watches = true;
  ASSERT_EQ(register_all().size(), 3U);
  ASSERT_TRUE(allocate(Resource::neuroncore, {"0"}));
  KubeletDirectory::Changes changes;
  changes.kubelet_appeared = true;
  manager.handle(changes);
  pass(300);
  EXPECT_EQ(unhealthy(Resource::neuron), 0U) << "no list goes out before the checkpoint is written";
  EXPECT_THAT(register_all(), IsEmpty());
}

TEST_F(DeviceManagerTest, WhoHoldsWhatIsAskedForAfterAnAnswer) {
  start("trn1.32xlarge");
  kubelet.asked.clear();
  ASSERT_TRUE(allocate(Resource::neuron, {"3"}));
  write_checkpoint();
  pass(499);
  EXPECT_THAT(kubelet.asked, IsEmpty());
  pass(1);
  EXPECT_EQ(kubelet.asked.size(), 1U);
  list_holders({{"default", "train", "worker", "aws.amazon.com/neuron", {"3"}}});
  pass(499);
  EXPECT_EQ(kubelet.asked.size(), 1U);
  pass(1);
  EXPECT_EQ(kubelet.asked.size(), 2U) << "soon again, as its cores are withheld from the other name";
}

// A pod that the kubelet refused for want of something else: a list as it was makes it write its checkpoint.
TEST_F(DeviceManagerTest, AnAdmissionThatStopsHalfWayIsEndedByACheckpoint) {
  start("trn1.32xlarge");
  ASSERT_TRUE(allocate(Resource::efa, {"rdmap16s25"}));
  for (int i = 0; i < 2; ++i) {
    pass(450);
    list_holders();
  }
  EXPECT_TRUE(allocations.holds_anything()) << "List does not show who is still being admitted";
  const auto lists = kubelet.servers.at(Resource::neuroncore)->lists.size();
  pass(100);
  ASSERT_EQ(kubelet.servers.at(Resource::neuroncore)->lists.size(), lists + 1);
  write_checkpoint();
  EXPECT_FALSE(allocations.holds_anything());
}

// The kubelet collects what a checkpoint shows under its lock and writes it without: a write that another overtakes
// lands last, and shows what was before.
struct OvertakenWrite : DeviceManagerTest {
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
      admissions.wait_for_checkpoint(resource, [this, resource, units, answer_now] {
        if (!allocations.needs_second_checkpoint(resource, units)) return answer_now();
        admissions.wait_for_checkpoint(resource, answer_now);
      });
    });
  }
  // The streams have sent what was published since.
  void send_lists() {
    pass(0);
    admissions.list_offered();
  }
  std::optional<bool> answer;
};

TEST_F(OvertakenWrite, IsNotTakenForTheFreshOneThatAnAnswerWaitsFor) {
  admit_init_container();
  ask(Resource::neuron, {"9"});
  EXPECT_EQ(answer, std::nullopt) << "its list is not written";
  send_lists();
  write_from_before();
  EXPECT_EQ(answer, std::nullopt) << "a second one decides";
  checkpoint.allocations = {init};
  send_lists();
  write_checkpoint();
  EXPECT_EQ(answer, false) << "core 18 is in use";
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

TEST_F(OvertakenWrite, IsTheTruthWhenTheSecondOneShowsTheSame) {
  admit_init_container();
  ask(Resource::neuron, {"9"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(answer, std::nullopt);
    send_lists();
    write_from_before();
  }
  EXPECT_EQ(answer, true) << "the pod has ended";
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
  admissions.list_offered();
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
  admissions.list_offered();
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

TEST_F(DeviceManagerTest, ServingTellsWhatIsMissing) {
  EXPECT_FALSE(manager.serving().scanned);
  scan("inf2.48xlarge");
  find_directory();
  list_holders();
  const auto steps = [this] {
    std::map<Resource, ServingStep> all;
    for (const ResourceReadiness& one : manager.serving().resources) all[one.resource] = one.step;
    return all;
  };
  EXPECT_EQ(steps().at(Resource::neuron), ServingStep::registering);
  EXPECT_EQ(steps().at(Resource::efa), ServingStep::not_offered);
  register_all();
  EXPECT_EQ(steps().at(Resource::neuron), ServingStep::registered);
  kubelet.watches = false;
  EXPECT_EQ(steps().at(Resource::neuron), ServingStep::unwatched);
}

}  // namespace
}  // namespace neuron::plugin
