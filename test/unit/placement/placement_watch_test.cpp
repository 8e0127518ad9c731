#include "plugin/placement/placement_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/fakes/fake_api.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/placement/pods.h"

namespace neuron::plugin {
namespace {

using model::Resource;
using std::chrono::milliseconds;

constexpr const char* kPath = "/api/v1/namespaces/default/pods/a";

struct Watch : testing::Test {
  fakes::FakeApi api;
  fakes::FakeClock clock;
  PlacementWatch watch{api, "node-1", [](SteadyTime, const PlacementBook::Job&) {}, clock};

  // A pod that was given what was placed.
  void give() {
    Json pod = pod_json("a", {container("main", {{kNeuron, "2"}})}, "4,5");
    pod["metadata"].erase("resourceVersion");
    api.put(kPath, pod);
    watch.on_reset();
    watch.on_upsert({.object_namespace = "default",
                     .name = "a",
                     .uid = api.at(kPath)["metadata"]["uid"],
                     .resource_version = "7",
                     .json = api.at(kPath)});
    watch.on_synced();
    ASSERT_TRUE(watch.book().choose(Resource::neuron, 2, {}));
    watch.book().given(Resource::neuron, {"4", "5"}, {});
  }
  [[nodiscard]] std::string allocated() const { return api.at(kPath)["metadata"]["annotations"]["NEURON_ALLOCATED"]; }
};

TEST_F(Watch, WritesThatTheIdsAreGivenAndNothingElse) {
  EXPECT_GT(watch.turn(), milliseconds(1000));
  give();
  const Json before = api.at(kPath);
  EXPECT_EQ(watch.turn(), milliseconds(0));
  EXPECT_EQ(allocated(), "true");
  ASSERT_EQ(api.writes().size(), 1U);
  EXPECT_EQ(
      Json::parse(api.writes()[0].body),
      (Json{{"metadata", {{"uid", before["metadata"]["uid"]}, {"annotations", {{"NEURON_ALLOCATED", "true"}}}}}}));
  EXPECT_GT(watch.turn(), milliseconds(1000));
}

TEST_F(Watch, TriesAgainSomeTimes) {
  give();
  api.fail_next({.times = fakes::FakeApi::kAlways, .method = kube::Method::merge_patch, .status = 503});
  int tries = 0;
  for (milliseconds pause{0}; pause < milliseconds(60'000); pause = watch.turn()) {
    if (pause.count() == 0) ++tries;
    clock.advance(pause);
  }
  EXPECT_EQ(tries, PlacementWatch::kMostAttempts + 1);
  EXPECT_EQ(allocated(), "false");
}

TEST_F(Watch, APassingFailureIsRepaired) {
  give();
  api.fail_next({.times = 1, .method = kube::Method::merge_patch, .status = 500});
  EXPECT_EQ(watch.turn(), milliseconds(0));
  EXPECT_EQ(allocated(), "false");
  clock.advance(watch.turn());
  EXPECT_EQ(watch.turn(), milliseconds(0));
  EXPECT_EQ(allocated(), "true");
}

TEST_F(Watch, ARefusalAndAPodThatIsGoneEndIt) {
  for (const int status : {403, 404, 409}) {
    give();
    api.fail_next({.times = 1, .method = kube::Method::merge_patch, .status = status});
    EXPECT_EQ(watch.turn(), milliseconds(0));
    EXPECT_GT(watch.turn(), milliseconds(1000)) << status;
    watch.book().remove(api.at(kPath)["metadata"]["uid"]);
    api.drop(kPath);
  }
}

TEST_F(Watch, FollowsThePodsOfTheNode) {
  std::jthread running([this](const std::stop_token& stop) { watch.run(stop); });
  ASSERT_TRUE(api.wait([&] { return api.open_watches() == 1; }));
  EXPECT_EQ(api.calls().at(0).path, "/api/v1/pods");
  EXPECT_THAT(api.calls().at(0).query, testing::HasSubstr("spec.nodeName%3Dnode-1"));
  Json pod = pod_json("a", {container("main", {{kNeuron, "2"}})}, "4,5");
  pod["metadata"].erase("resourceVersion");
  api.put(kPath, pod);
  bool known = false;
  Mutex mutex;
  std::condition_variable_any changed;
  watch.book().when_known(Resource::neuron, 2, [&] {
    const MutexLock lock(mutex);
    known = true;
    changed.notify_all();
  });
  {
    const MutexLock lock(mutex);
    while (!known && changed.wait_for(mutex, std::chrono::seconds(20)) == std::cv_status::no_timeout) {
    }
    ASSERT_TRUE(known);
  }
  ASSERT_TRUE(watch.book().choose(Resource::neuron, 2, {}));
  watch.book().given(Resource::neuron, {"4", "5"}, {});
  EXPECT_TRUE(api.wait([&] { return allocated() == "true"; }));
}

}  // namespace
}  // namespace neuron::plugin
